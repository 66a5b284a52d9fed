import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../index.ts';

let status = 404;
let streamUrl: string;
let requests = 0;
const server = http.createServer((_request, response) => {
  requests += 1;
  response.writeHead(status).end('nothing here');
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  streamUrl = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

test('an address without a stream ends the stream at once, and the error says so', async () => {
  const stream = createClient({ streamUrl, key: 'k' }).stream({ symbols: ['A'] });
  const items = stream[Symbol.asyncIterator]();
  await expect(items.next()).rejects.toMatchObject({
    code: 'not_pillole',
    message: expect.stringContaining('answers HTTP 404'),
  });
  expect(requests).toBe(1);
});

test('a proxy that is briefly without the stream is asked again', async () => {
  status = 503;
  const before = requests;
  const stream = createClient({ streamUrl, key: 'k' }).stream({ symbols: ['A'] });
  const { error } = await new Promise<{ error: unknown }>((resolve) =>
    stream.on('reconnecting', resolve),
  );
  expect(error).toMatchObject({ code: 'connection_lost' });
  stream.close();
  expect(requests).toBeGreaterThan(before);
});
