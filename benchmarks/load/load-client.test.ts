import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { monotonicMicros } from '../harness/open-loop.ts';
import { buildLoadClient, type LoadClient, percentilesOf } from './load-client.ts';

/** The default of one second is too short on a machine that is busy with other tests. */
const PATIENCE = { timeout: 60_000 };
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
const openClient = buildLoadClient(folder);
const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
const sockets: WebSocket[] = [];
const received: string[] = [];
let client: LoadClient;

beforeAll(async () => {
  server.on('connection', (socket, request) => {
    sockets.push(socket);
    socket.on('message', (text) => {
      received.push(`${request.headers['x-api-key']} ${String(text)}`);
      socket.send('{"type":"live"}');
    });
  });
  const { port } = server.address() as { port: number };
  const target = { url: `ws://127.0.0.1:${port}/api/stream`, key: 'a-key', saysLive: true };
  client = await openClient(target, 3, ['{"a":1}', '{"b":2}'], { keepsArrivals: true });
});

afterAll(async () => {
  await client?.stop();
  server.close();
  rmSync(folder, { recursive: true });
});

it('each socket sends its key and its frame', () => {
  expect([...received].sort()).toEqual(['a-key {"a":1}', 'a-key {"a":1}', 'a-key {"b":2}']);
});

it('counts each pill once per socket, whatever frames carry the pills', async () => {
  const startMicros = monotonicMicros() - 5_400;
  await client.begin({ run: 'r1', pills: 400, startMicros, perS: 1e6 });
  const pill = (number: number) => `{"cursor":"0-1","id":"r1-${number}","symbol":"A"}`;
  const [first, second, third] = sockets as [WebSocket, WebSocket, WebSocket];
  first.send(pill(0));
  first.send(`[${pill(1)},${pill(2)},${pill(1)}]`);
  // Longer than one read, in a frame with a length of eight bytes.
  second.send(`[${Array.from({ length: 400 }, (_, i) => pill(i) + ' '.repeat(1_000)).join(',')}]`);
  second.send(pill(400)); // beyond the run
  third.send(pill(7).replace('r1-', 'r10-'));
  third.send('{"type":"error","code":"x"}');
  await expect.poll(client.arrived, PATIENCE).toBe(403);
  await expect.poll(async () => (await client.report()).errors, PATIENCE).toBe(1);
  const report = await client.report();
  expect(report).toMatchObject({
    ...{ sockets: 3, received: 403, receivedMin: 0, receivedMax: 400, doubled: 1, closed: 0 },
    firstError: "{'type':'error','code':'x'}",
  });
  const { count, p50 } = percentilesOf(report.histogram);
  expect(count).toBe(403);
  expect(p50).toBeGreaterThanOrEqual(5_000);
  const at = await client.arrivalsAt(0);
  expect([...at.times.slice(0, 4)]).toEqual([1, 1, 1, 0]);
  expect(at.pills).toBe(3);
  expect(at.firstMicros[0]).toBeGreaterThan(startMicros);
  expect(at.firstMicros[3]).toBe(0);
});

it('answers pings, and counts a socket that was closed', async () => {
  const [first] = sockets as [WebSocket];
  const ponged = new Promise((resolve) => first.once('pong', resolve));
  first.ping('still there?');
  expect(String(await ponged)).toBe('still there?');
  first.close(4001);
  await expect.poll(async () => (await client.state()).closed, PATIENCE).toBe(1);
});
