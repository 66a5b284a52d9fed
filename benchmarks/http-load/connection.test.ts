import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { median } from '../median.ts';
import { answerOf, connect } from './connection.ts';
import { requestOf } from './requests.ts';

const ANSWER = 'HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello';

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that writes these pieces in answer to each request. */
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

describe('the light client', () => {
  test('an answer counts when its last byte is there, in however many pieces', () => {
    for (let cut = 0; cut < ANSWER.length; cut += 1) {
      expect(answerOf(Buffer.from(ANSWER.slice(0, cut)))).toBeUndefined();
    }
    const { status, body } = answerOf(Buffer.from(ANSWER))!;
    expect([status, body.toString()]).toEqual([404, 'hello']);
  });

  test('one request after the other on one connection, answers in pieces', async () => {
    const connection = await connect(await listen([...ANSWER.match(/[\s\S]{1,20}/g)!]));
    const ask = () =>
      new Promise<number>((resolve) => connection.ask(requestOf('A.T', null), resolve));
    expect([await ask(), await ask()]).toEqual([404, 404]);
    connection.close();
  });

  test('a connection that breaks is told as 0, and so is every later request', async () => {
    const connection = await connect(await listen([ANSWER.slice(0, 30)], true));
    const ask = () =>
      new Promise<number>((resolve) => connection.ask(requestOf('A.T', null), resolve));
    expect([await ask(), await ask()]).toEqual([0, 0]);
  });

  test('the median', () => {
    expect([median([3]), median([1, 9, 2]), median([4, 1, 2, 3])]).toEqual([3, 2, 2.5]);
  });
});
