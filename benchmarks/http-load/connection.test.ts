import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { connect, parseResponse } from './connection.ts';
import { readRequest } from './requests.ts';

const ANSWER = 'HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello';

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that writes these pieces in response to each request. */
function listen(pieces: readonly string[], isLast = false): Promise<number> {
  server = createServer((socket) => {
    socket.on('data', async () => {
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if (isLast) socket.destroy();
    });
  });
  return new Promise((resolve) => {
    server?.listen(0, '127.0.0.1', () => {
      const address = server?.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

describe('a connection of the load client', () => {
  test('a response counts when its last byte has arrived, in however many pieces', () => {
    for (let cut = 0; cut < ANSWER.length; cut += 1) {
      expect(parseResponse(Buffer.from(ANSWER.slice(0, cut)))).toBeUndefined();
    }
    const { status, body } = parseResponse(Buffer.from(ANSWER))!;
    expect([status, body.toString()]).toEqual([404, 'hello']);
  });

  test('requests follow one another on a connection, with responses in pieces', async () => {
    const connection = await connect(await listen([...ANSWER.match(/[\s\S]{1,20}/g)!]));
    const ask = () =>
      new Promise<number>((resolve) =>
        connection.send(readRequest('A.T', null), ({ status }) => resolve(status)),
      );
    expect([await ask(), await ask()]).toEqual([404, 404]);
    connection.close();
  });

  test('a connection that breaks yields status 0, also for every later request', async () => {
    const connection = await connect(await listen([ANSWER.slice(0, 30)], true));
    const ask = () =>
      new Promise<number>((resolve) =>
        connection.send(readRequest('A.T', null), ({ status }) => resolve(status)),
      );
    expect([await ask(), await ask()]).toEqual([0, 0]);
  });
});
