// Some sockets stop reading. The others notice nothing; what waits for the slow ones is bounded; those
// of `all` are closed with the position they go on from, those of `latest` get the newest. How long
// all this takes is measured by the benchmark `fanout`.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { LIMITS } from './limits.ts';
import { type Client, closeClients, connect, type GotPill } from './testing/client.ts';

const SYMBOLS = ['SLOW1.T', 'SLOW2.T', 'SLOW3.T'];
const READERS = 6;
const DEAF = 12;
const DEAF_LATEST = 8;
const PER_WRITE = 600;
/** Our queue, and what uWS holds: one frame with its head, and a heartbeat before it was noticed. */
const CONNECTION_BYTES_MAX = LIMITS.queueBytesMax + LIMITS.frameOutBytesMax + 4_096;

let namespace: Namespace;
let writer: PillWriter;
let stream: TestProcess;
let url: string;
/** What those that stop reading read through. */
let relay: ChildProcess;
let relayUrl: string;
let db: Database;
let key: string;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'institutional' }));
  stream = await startProcess('gateway/stream/main.js', [], { ...namespace.env, STREAM_PORT: '0' });
  await stream.ready();
  url = /"url":"(ws:[^"]+)"/.exec(stream.output())![1]!;
  const script = path.join(import.meta.dirname, 'testing', 'narrow-relay.py');
  relay = spawn('python3', [script, new URL(url).port], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = (await once(relay.stdout!, 'data')) as [Buffer];
  relayUrl = url.replace(/:\d+/, `:${String(port).trim()}`);
});

afterAll(async () => {
  closeClients();
  relay?.kill();
  await stream?.stop();
  await writer?.close();
  await db?.destroy();
});

async function come(
  count: number,
  fields: Record<string, unknown> = {},
  to = url,
): Promise<Client[]> {
  const clients: Client[] = [];
  for (let n = 0; n < count; n += 1) {
    const client = await connect(to, { key });
    client.send({ op: 'subscribe', id: '1', symbols: SYMBOLS, snapshot: false, ...fields });
    await client.until('live');
    clients.push(client);
  }
  return clients;
}

/** A sum of the process's metrics over the labels that match. */
async function metric(name: string, labels = ''): Promise<number> {
  const text = await (await fetch(`${stream.opsUrl}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name}${labels} `));
  return line === undefined ? 0 : Number(line.split(' ').at(-1));
}

const queueBytes = () => metric('pillole_stream_queue_bytes');
const closedSlow = () => metric('pillole_stream_closed_total', '{reason="slow_consumer"}');

function newestOf(client: Client, symbol: string): string | undefined {
  return client.pills().findLast((pill) => pill.symbol === symbol)?.cursor;
}

/**
 * What a reader of `all` can say of what it got: each pill of each symbol, once, in order. The first
 * of a replay does not name the one before it.
 */
function expectWhole(pills: readonly GotPill[], count: number): void {
  for (const symbol of SYMBOLS) {
    const own = pills.filter((pill) => pill.symbol === symbol);
    expect(own).toHaveLength(count / SYMBOLS.length);
    for (let at = 1; at < own.length; at += 1) {
      const [before, { cursor, prev, replayed }] = [own[at - 1]!, own[at]!];
      if (before.replayed !== replayed) expect(prev).toBeNull();
      else if (prev !== before.cursor) expect.fail(`${symbol} ${cursor} after ${before.cursor}`);
      if (offsetOf(cursor) <= offsetOf(before.cursor))
        expect.fail(`${symbol} ${cursor} is not newer`);
    }
  }
}

function offsetOf(cursor: string): number {
  return Number(cursor.split('-')[1]);
}

test('twenty that stop reading: bounded, told what they missed, and back without loss', async () => {
  const readers = await come(READERS);
  const deaf = await come(DEAF, {}, relayUrl);
  const latest = await come(DEAF_LATEST, { mode: 'latest' }, relayUrl);
  relay.kill('SIGUSR1');

  // The kernel takes some MiB for each before our own queues begin to fill.
  let count = 0;
  let queueBytesMax = 0;
  const id = 'x'.repeat(100);
  await waitFor(
    'the deaf ones to be closed',
    async () => {
      const pills = Array.from({ length: PER_WRITE }, (_, i) =>
        makePill({ symbol: SYMBOLS[i % SYMBOLS.length]!, id: `${id}${count + i}` }),
      );
      count += PER_WRITE;
      await writer.write(pills);
      queueBytesMax = Math.max(queueBytesMax, await queueBytes());
      const [closed, queued] = [await closedSlow(), await queueBytes()];
      const got = readers.map((reader) => reader.pills().length);
      return closed === DEAF || `${closed} after ${count}, ${queued} B queued, readers: ${got}`;
    },
    90_000,
  );
  await waitFor('all pills at the readers', () =>
    readers.every((reader) => reader.pills().length === count),
  );
  for (const reader of readers) expectWhole(reader.pills(), count);

  // More than one queue was seen to fill, and never more than the bound of each.
  expect(queueBytesMax).toBeGreaterThan(LIMITS.frameOutBytesMax);
  expect(queueBytesMax).toBeLessThanOrEqual((DEAF + DEAF_LATEST) * CONNECTION_BYTES_MAX);
  // A `latest` reader's share does not grow with what it misses: a symbol is held once.
  expect(await queueBytes()).toBeLessThanOrEqual(
    DEAF_LATEST * (CONNECTION_BYTES_MAX - LIMITS.queueBytesMax),
  );

  relay.kill('SIGUSR2');
  await Promise.all(deaf.map((client) => expectBack(client, count)));
  const newest = SYMBOLS.map((symbol) => newestOf(readers[0]!, symbol));
  await Promise.all(latest.map((client) => expectNewest(client, newest, count)));
}, 180_000);

/** It has been closed with the position it goes on from, and going on from there misses nothing. */
async function expectBack(client: Client, count: number): Promise<void> {
  const error = await client.until('error', 30_000);
  expect(error).toMatchObject({ code: 'slow_consumer', fatal: true, close: 4001 });
  expect(await client.closed).toEqual({ code: 4001, reason: 'slow_consumer' });
  const before = client.pills();
  expect(before.length).toBeLessThan(count);
  const [back] = await come(1, { resume: error.position });
  expect(await back!.until('subscribed')).toMatchObject({ recovered: true });
  await waitFor('the rest', () => before.length + back!.pills().length >= count);
  expectWhole([...before, ...back!.pills()], count);
}

/** It has the newest of each symbol, and what it did not get is counted. */
async function expectNewest(
  client: Client,
  newest: readonly (string | undefined)[],
  count: number,
): Promise<void> {
  await waitFor('the newest of each symbol', () =>
    newest.every((cursor, at) => newestOf(client, SYMBOLS[at]!) === cursor),
  );
  let skipped = 0;
  for (const symbol of SYMBOLS) {
    const own = client.pills().filter((pill) => pill.symbol === symbol);
    const missed = own.reduce((sum, pill) => sum + (pill.skipped ?? 0), 0);
    expect(missed).toBeGreaterThan(0);
    expect(missed + own.length).toBe(count / SYMBOLS.length);
    skipped += missed;
  }
  const beat = await waitFor('a heartbeat after it', async () => {
    const next = await client.until('heartbeat');
    return next.sent === client.pills().length && next;
  });
  expect(beat.skipped).toBe(skipped);
}
