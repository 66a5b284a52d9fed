// Some sockets stop reading. The others are not affected, and the queues of the slow sockets are
// bounded: slow sockets in `all` mode are closed with a position to resume from, and slow sockets
// in `latest` mode get the newest pills. The benchmark `fanout` measures the times.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill, type PillWriter } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { LIMITS } from './limits.ts';
import { type NarrowRelay, openNarrowRelay } from './testing/narrow-relay.ts';
import { openStreamFixture, type StreamFixture } from './testing/start-stream.ts';
import { type Client, closeClients, connect, type GotPill } from './testing/stream-client.ts';

const SYMBOLS = ['SLOW1.T', 'SLOW2.T', 'SLOW3.T'];
const READERS = 6;
const DEAF = 12;
const DEAF_LATEST = 8;
const PER_WRITE = 600;
/** Our queue, and the buffer of uWS: one frame with its header, and an earlier heartbeat. */
const CONNECTION_BYTES_MAX = LIMITS.queueBytesMax + LIMITS.frameOutBytesMax + 4_096;

let fixture: StreamFixture;
let writer: PillWriter;
let stream: TestProcess;
let url: string;
/** The proxy of the sockets that stop reading. */
let relay: NarrowRelay;
let key: string;

beforeAll(async () => {
  fixture = await openStreamFixture();
  ({ writer, stream, url, key } = fixture);
  relay = await openNarrowRelay(url);
});

afterAll(async () => {
  closeClients();
  relay?.close();
  await fixture?.close();
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

/** Sums a metric of the process over the labels that match. */
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
 * Checks the pills of an `all` reader: each pill of each symbol once, in order. The first pill of a
 * replay has no `prev`.
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

test('twenty sockets that stop reading: queues are bounded, losses reported, and resumes complete', async () => {
  const readers = await come(READERS);
  const deaf = await come(DEAF, {}, relay.url);
  const latest = await come(DEAF_LATEST, { mode: 'latest' }, relay.url);
  relay.pause();

  // The kernel buffers some MiB for each socket before our own queues begin to fill.
  let count = 0;
  let queueBytesMax = 0;
  const id = 'x'.repeat(100);
  await waitFor(
    'the sockets that stopped reading to be closed',
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
    180_000,
  );
  await waitFor('all pills at the readers', () =>
    readers.every((reader) => reader.pills().length === count),
  );
  for (const reader of readers) expectWhole(reader.pills(), count);

  // More than one queue filled up, and none exceeded its bound.
  expect(queueBytesMax).toBeGreaterThan(LIMITS.frameOutBytesMax);
  expect(queueBytesMax).toBeLessThanOrEqual((DEAF + DEAF_LATEST) * CONNECTION_BYTES_MAX);
  // The queue of a `latest` reader does not grow with its missed pills: a symbol is held once.
  expect(await queueBytes()).toBeLessThanOrEqual(
    DEAF_LATEST * (CONNECTION_BYTES_MAX - LIMITS.queueBytesMax),
  );

  relay.resume();
  await Promise.all(deaf.map((client) => expectBack(client, count)));
  const newest = SYMBOLS.map((symbol) => newestOf(readers[0]!, symbol));
  await Promise.all(latest.map((client) => expectNewest(client, newest, count)));
});

/** Checks that it was closed with a position, and that a resume from there misses nothing. */
async function expectBack(client: Client, count: number): Promise<void> {
  const error = await client.until('error');
  expect(error).toMatchObject({ code: 'slow_consumer', fatal: true, close: 4001 });
  expect(await client.closed).toEqual({ code: 4001, reason: 'slow_consumer' });
  const before = client.pills();
  expect(before.length).toBeLessThan(count);
  const [back] = await come(1, { resume: error.position });
  expect(await back!.until('subscribed')).toMatchObject({ recovered: true });
  await waitFor('the rest', () => before.length + back!.pills().length >= count);
  expectWhole([...before, ...back!.pills()], count);
}

/** Checks that it has the newest pill of each symbol, and the count of the others. */
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
  const beat = await waitFor('a heartbeat past the pills', async () => {
    const next = await client.until('heartbeat');
    return next.sent === client.pills().length && next;
  });
  expect(beat.skipped).toBe(skipped);
}
