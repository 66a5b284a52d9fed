import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { monotonicMicros } from '../clock.ts';
import { buildLoadClient, type LoadClient, startLoadClient } from './load-client.ts';
import { percentilesOf } from './percentiles.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
const binary = buildLoadClient(folder);
const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
const sockets: WebSocket[] = [];
const heard: string[] = [];
let client: LoadClient;

beforeAll(async () => {
  server.on('connection', (socket, request) => {
    sockets.push(socket);
    socket.on('message', (text) => {
      heard.push(`${request.headers['x-api-key']} ${String(text)}`);
      socket.send('{"type":"live"}');
    });
  });
  const { port } = server.address() as { port: number };
  client = startLoadClient({
    ...{ binary, folder, sockets: 3, saysLive: true, key: 'a-key' },
    ...{ subscribeFrames: ['{"a":1}', '{"b":2}'] },
    url: `ws://127.0.0.1:${port}/api/stream`,
  });
  await client.ready();
});

afterAll(async () => {
  await client?.stop();
  server.close();
  rmSync(folder, { recursive: true });
});

it('each socket sends its key and its frame', () => {
  expect([...heard].sort()).toEqual(['a-key {"a":1}', 'a-key {"a":1}', 'a-key {"b":2}']);
});

it('counts each pill once a socket, whatever the frames they come in', async () => {
  await client.begin('r1', 400);
  const planned = monotonicMicros() - 5_000;
  const pill = (number: number) => `{"cursor":"0-1","id":"r1-${number}-${planned}","symbol":"A"}`;
  const [first, second, third] = sockets as [WebSocket, WebSocket, WebSocket];
  first.send(pill(0));
  first.send(`[${pill(1)},${pill(2)},${pill(1)}]`);
  // Longer than one read, in a frame with a length of eight bytes.
  second.send(`[${Array.from({ length: 400 }, (_, i) => pill(i) + ' '.repeat(1_000)).join(',')}]`);
  second.send(pill(400)); // not of the run's
  third.send(pill(7).replace('r1-', 'r10-'));
  third.send('{"type":"error","code":"x"}');
  await expect.poll(client.received).toBe(403);
  await expect.poll(async () => (await client.report()).errors).toBe(1);
  const report = await client.report();
  expect(report).toMatchObject({
    ...{ sockets: 3, received: 403, receivedMin: 0, receivedMax: 400, doubled: 1, closed: 0 },
    told: "{'type':'error','code':'x'}",
  });
  const { count, p50 } = percentilesOf(report.histogram);
  expect(count).toBe(403);
  expect(p50).toBeGreaterThanOrEqual(5_000);
});

it('answers pings, and tells how a socket was closed', async () => {
  const [first] = sockets as [WebSocket];
  const ponged = new Promise((resolve) => first.once('pong', resolve));
  first.ping('still there?');
  expect(String(await ponged)).toBe('still there?');
  first.close(4001);
  await expect.poll(async () => (await client.state()).closed).toBe(1);
});
