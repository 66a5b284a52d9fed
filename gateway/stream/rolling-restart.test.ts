import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { formatCursor } from '../../schemas/position.ts';
import { createClient } from '../../sdk/index.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { type Balancer, openBalancer } from '../../testing/balancer.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

const SYMBOLS = Array.from({ length: 50 }, (_, n) => `S${n}.T`);
/** 20 pills every 20 ms: 1,000 per second if the machine can keep up. */
const BATCH = 20;
const EVERY_MS = 20;

let namespace: Namespace;
let writer: PillWriter;
let db: Database;
let key: string;
let balancer: Balancer;
const instances = new Map<TestProcess, number>();

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'pro' }));
  balancer = await openBalancer();
});

afterAll(async () => {
  balancer?.close();
  await Promise.all([...instances.keys()].map((one) => one.stop()));
  await writer?.close();
  await db?.destroy();
});

async function start(): Promise<TestProcess> {
  const env = { ...namespace.env, STREAM_PORT: '0' };
  const one = await startProcess('gateway/stream/main.js', [], env);
  await one.ready();
  instances.set(one, Number(/"url":"ws:[^"]*:(\d+)\//.exec(one.output())![1]));
  balancer.use([...instances.values()]);
  return one;
}

/** Stops or kills an instance, and starts a new one in its place. */
async function replace(old: TestProcess, end: () => Promise<unknown>): Promise<TestProcess> {
  instances.delete(old);
  balancer.use([...instances.values()]);
  await end();
  return start();
}

/** A client that resumes without REST calls: all its pills come from the streams. */
function follow(symbols: string | readonly string[]) {
  const stream = createClient({
    apiUrl: 'http://127.0.0.1:1',
    streamUrl: `ws://127.0.0.1:${balancer.port}`,
    key,
  }).stream({ symbols, snapshot: false, fillGaps: false });
  const cursors: string[] = [];
  const gaps: object[] = [];
  const delays: number[] = [];
  let isLive = false;
  stream.on('pill', ({ cursor }) => cursors.push(cursor));
  stream.on('gap', (gap) => gaps.push(gap));
  stream.on('open', () => {
    isLive = true;
  });
  stream.on('reconnecting', ({ delayMs }) => delays.push(delayMs));
  const wants = (symbol: string) => symbols === '*' || symbols.includes(symbol);
  return { stream, cursors, gaps, delays, wants, isLive: () => isLive };
}

test('two instances restarted in turn, and one killed, under load: no loss, no duplicates', async () => {
  let first = await start();
  const second = await start();
  const clients = [...Array.from({ length: 6 }, () => '*'), SYMBOLS.slice(0, 5), [SYMBOLS[9]!]].map(
    follow,
  );
  await waitFor('all clients to be live', () => clients.every((client) => client.isLive()));

  const written = new Map<string, string>();
  let isWriting = true;
  let turn = 0;
  const writing = (async () => {
    const startMs = performance.now();
    while (isWriting) {
      // By schedule, not by the last answer, so that a slow turn is caught up with.
      const due = Math.floor((performance.now() - startMs) / EVERY_MS) + 1;
      for (; turn < due; turn += 1) {
        const pills = Array.from({ length: BATCH }, (_, n) =>
          makePill({ symbol: SYMBOLS[(turn * BATCH + n) % SYMBOLS.length]! }),
        );
        const acks = await writer.write(pills);
        for (const [at, { partition, offset }] of acks.entries()) {
          written.set(formatCursor(partition, offset), pills[at]!.symbol);
        }
      }
      await sleep(EVERY_MS);
    }
  })();
  const flowed = async () => {
    const counts = clients.map(({ cursors }) => cursors.length);
    await waitFor('pills to flow everywhere', () =>
      clients.every(({ cursors }, at) => cursors.length > counts[at]! + 20),
    );
  };
  await flowed();
  first = await replace(first, () => first.stop());
  await flowed();
  await replace(second, () => second.stop());
  await flowed();
  await replace(first, () => first.kill());
  await flowed();
  isWriting = false;
  await writing;

  for (const { cursors, wants, gaps } of clients) {
    const expected = [...written].filter(([, symbol]) => wants(symbol)).map(([cursor]) => cursor);
    await waitFor('all pills to arrive', () => cursors.length >= expected.length);
    expect([...cursors].sort()).toEqual(expected.sort());
    expect(gaps).toEqual([]);
  }
  // The clients reconnected at different times.
  const delays = clients.flatMap((client) => client.delays);
  expect(delays.length).toBeGreaterThanOrEqual(clients.length);
  expect(new Set(delays).size).toBeGreaterThan(delays.length / 2);
  for (const { stream } of clients) stream.close();
});
