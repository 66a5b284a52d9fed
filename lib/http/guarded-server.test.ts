import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { sendRaw } from '../../testing/raw-http.ts';
import { createGuardedServer, type Handler, parseTarget } from './guarded-server.ts';

test.each([
  ['/', '/', ''],
  ['/a/../b?c=%', '/b', '?c=%'],
  ['//', '//', ''],
  ['//host/a', '//host/a', ''],
  ['///', '///', ''],
  ['/%', '/%', ''],
  ['/\\', '//', ''],
  ['/:0', '/:0', ''],
  ['/@', '/@', ''],
  ['http://x/ping', '/ping', ''],
])('%j has the path %j', (target, pathname, search) => {
  expect(parseTarget(target)).toMatchObject({ pathname, search });
});

test.each(['', '*', 'x:1', 'http://', 'http://[', 'a b'])('%j is no URL with a path', (target) => {
  expect(parseTarget(target)?.pathname.startsWith('/') ?? false).toBe(false);
});

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve(handle: Handler) {
  const errors: unknown[] = [];
  const server = createGuardedServer(handle, (error) => errors.push(error));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { errors, port: (server.address() as AddressInfo).port };
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

test.each<[string, Handler]>([
  [
    'throws',
    () => {
      throw new Error('x');
    },
  ],
  ['rejects', () => Promise.reject(new Error('x'))],
  [
    'sets a header that cannot be sent',
    (_request, response) => {
      response.setHeader('x', '1');
      response.writeHead(200, { y: 'a\nb' });
    },
  ],
])('a handler that %s ends its request with 500', async (_name, handle) => {
  const { errors, port } = await serve(handle);
  const answer = await sendRaw(port, GET);
  expect(answer).toMatchObject({ status: 500, body: 'The request failed.' });
  expect(answer.headers).not.toHaveProperty('x');
  expect(errors).toHaveLength(1);
});

test('a handler that fails after the head ends the connection', async () => {
  const { errors, port } = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 5 }).write('a');
    throw new Error('x');
  });
  await expect(sendRaw(port, GET)).rejects.toThrow('Ended after');
  expect(errors).toHaveLength(1);
});
