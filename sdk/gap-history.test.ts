// A client is disconnected while the stream restarts and retention cuts the log: the gap is filled from
// history, over the wire, exactly and free of charge.

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { withAdmin } from '../lib/kafka/kafka-client.ts';
import type { Database } from '../lib/postgres/database.ts';
import { nowMicros } from '../lib/timing/clock.ts';
import { topicName } from '../schemas/topic-catalogue.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { startIngest } from '../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../testing/pills.ts';
import { getPort } from '../testing/ports.ts';
import { createPoster, type Poster } from '../testing/poster.ts';
import { startProcess, type TestProcess } from '../testing/process.ts';
import { waitFor } from '../testing/wait.ts';
import { createClient, type StreamItem } from './index.ts';
import { endRuns, runCli } from './testing/run-program.ts';

const SYMBOLS = ['7203.T', '9984.T', 'D05.SI'];
/** The client waits up to 30 s between attempts, and a busy machine may fail the first ones. */
const BACK_MS = 180_000;
/** More than one page. */
const MISSED = 5_200;

let namespace: Namespace;
let writer: PillWriter;
let db: Database;
let key: string;
let poster: Poster;
const processes: TestProcess[] = [];
let stream: TestProcess;
let streamPort: string;
let apiUrl: string;
let sent = 0;
const live: string[] = [];

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'pro' }));
  const apiPort = String(await getPort());
  streamPort = String(await getPort());
  apiUrl = `http://127.0.0.1:${apiPort}`;
  for (const [entry, args, env] of [
    ['gateway/api/main.js', [], { API_PORT: apiPort }],
    ['pipelines/main.js', ['latest'], {}],
    ['pipelines/main.js', ['analytics'], {}],
  ] as const) {
    processes.push(await startProcess(entry, args, { ...namespace.env, ...env }));
    await processes.at(-1)!.ready();
  }
  const ingest = await startIngest(namespace);
  await ingest.process.ready();
  processes.push(ingest.process);
  poster = createPoster(ingest.url);
  stream = await startStream();
});

afterEach(endRuns);
afterAll(async () => {
  await Promise.all([...processes, stream].map((process) => process?.stop()));
  await poster?.close();
  await writer?.close();
  await db?.destroy();
});

async function startStream(): Promise<TestProcess> {
  const env = { ...namespace.env, STREAM_PORT: streamPort };
  const process = await startProcess('gateway/stream/main.js', [], env);
  await process.ready();
  return process;
}

const client = () => createClient({ apiUrl, streamUrl: `ws://127.0.0.1:${streamPort}`, key });

/** Sends one live pill of each symbol, as a generator does. */
async function sendRound(): Promise<void> {
  sent += 1;
  for (const symbol of SYMBOLS) {
    const id = `${symbol} ${sent}`;
    await poster.post(makePill({ id, symbol }));
    live.push(id);
  }
}

/** Waits until history covers a position. */
const stored = (position: string) =>
  waitFor('history', async () => {
    const { data } = await client().history({ until: position, limit: 1 });
    return data.length === 1;
  });

/** Empties the log, as retention would: only history still has the pills. */
async function cutLog(): Promise<void> {
  const topic = topicName(namespace.name, 'pills');
  await withAdmin(namespace.client, async (admin) => {
    const offsets = await admin.fetchTopicOffsets(topic);
    const partitions = offsets.map(({ partition, high }) => ({ partition, offset: high }));
    await admin.deleteTopicRecords({ topic, partitions });
  });
}

test('a gap is filled from history: each live pill once, in order, free of charge', async () => {
  const followed = client().stream({ symbols: SYMBOLS, snapshot: false, bufferMax: 500 });
  const items: StreamItem[] = [];
  const reading = (async () => {
    for await (const item of followed) items.push(item);
  })();
  const idsOf = (symbol?: string) =>
    items.flatMap((item) =>
      item.type === 'pill' && (symbol ?? item.symbol) === item.symbol ? [item.id] : [],
    );
  await waitFor('live', () => followed.state === 'live');
  for (let n = 0; n < 3; n += 1) await sendRound();
  await waitFor('the first pills', () => idsOf().length === live.length);

  await stream.kill();
  for (let n = 0; n < 5; n += 1) await sendRound();
  const missed = Array.from({ length: MISSED }, (_, n) => {
    const id = `missed ${n}`;
    live.push(id);
    return makePill({ symbol: SYMBOLS[0]!, id });
  });
  await writer.write(missed);
  await writer.write([
    ...missed.slice(0, 50), // repeats
    ...SYMBOLS.map((symbol) =>
      makePill({ symbol, id: 'old', timestamp: nowMicros() - 3_600_000_000 }),
    ),
  ]);
  await sendRound();
  const { position } = await waitFor('the view to have the last pill', async () => {
    const { data, position } = await client().latest(SYMBOLS);
    return SYMBOLS.every((symbol) => data[symbol]?.id === `${symbol} ${sent}`) && { position };
  });
  await stored(position);
  await cutLog();
  const { used } = (await client().usage()).today;
  stream = await startStream();
  await waitFor('the stream to be live again', () => followed.state === 'live', BACK_MS);
  await sendRound();
  await waitFor('all pills to arrive', () => idsOf().length >= live.length, BACK_MS).catch(
    () => undefined,
  );
  followed.close();
  await reading;

  const gaps = items.flatMap((item) => (item.type === 'gap' ? [item] : []));
  expect(
    gaps.map(({ symbols, filled, reason, error }) => ({ symbols, filled, reason, error })),
  ).toEqual(
    SYMBOLS.map((symbol) => ({
      symbols: [symbol],
      filled: true,
      reason: 'position_expired',
      error: undefined,
    })),
  );
  expect(gaps.reduce((sum, { pills }) => sum + pills, 0)).toBe(MISSED + 6 * SYMBOLS.length);
  for (const symbol of SYMBOLS) {
    const expected = live.filter((id) =>
      id.startsWith('missed') ? symbol === SYMBOLS[0] : id.startsWith(symbol),
    );
    expect(idsOf(symbol), symbol).toEqual(expected);
  }
  expect((await client().usage()).today.used).toBe(used);
});

test('history by time: iterator and command line read all pages', async () => {
  const [symbol] = SYMBOLS;
  const { position } = await waitFor('the view to have the last pill', async () => {
    const { data, position } = await client().latest(SYMBOLS);
    return SYMBOLS.every((one) => data[one]?.id === `${one} ${sent}`) && { position };
  });
  await stored(position);
  const from = new Date(Date.now() - 2 * 3_600_000);
  const range = client().history(symbol!, from);
  const got: string[] = [];
  for await (const pill of range) got.push(pill.id);
  const own = live.filter((id) => id.startsWith('missed') || id.startsWith(symbol!));
  expect(got[0]).toBe('old'); // an hour old by its timestamp
  expect(got.slice(1)).toEqual(own);
  expect(range.asOf).toMatchObject({ lag_ms: 0 });
  let pages = 0;
  for await (const page of range.pages()) pages += page.data.length > 0 ? 1 : 0;
  expect(pages).toBe(2);

  const run = (...args: readonly string[]) =>
    runCli(['history', symbol!, ...args], { env: { PILLOLE_API_URL: apiUrl, PILLOLE_KEY: key } });
  const all = run('--from', from.toISOString(), '--json');
  expect(await all.exited).toBe(0);
  expect(all.json().map(({ id }) => id)).toEqual(got);
  expect(all.stderr()).toContain(`${got.length} pills, as of ${namespace.settings.epoch}:`);
  const newest = run('--from', from.toISOString(), '--newest-first', '--json');
  expect(await newest.exited).toBe(0);
  expect(newest.json().map(({ id }) => id)).toEqual([...got].reverse());
  const some = run('--from', from.toISOString(), '-n', '3');
  expect(await some.exited).toBe(0);
  expect(some.stdout().trimEnd().split('\n')).toHaveLength(4);
  expect(some.stdout()).toMatch(/^TIME \(UTC\) .*\n.* backfill\n/);
  const none = run('--from', from.toISOString(), '--to', new Date(+from + 1_000).toISOString());
  expect(await none.exited).toBe(6);
  const typo = symbol!.replace('.T', '');
  const env = { PILLOLE_API_URL: apiUrl, PILLOLE_KEY: key };
  const unknown = runCli(['history', typo, '--from', from.toISOString()], { env });
  expect(await unknown.exited).toBe(6);
  expect(unknown.stderr()).toContain(
    `The log has no pill of ${typo}. Perhaps you mean ${symbol}.\n`,
  );
  const long = run('--from', '2020-01-01T00:00:00Z');
  expect(await long.exited).toBe(2);
  expect(long.stderr()).toMatch(/to=2020-02-01T00:00:00\.000000Z would fit/);
});
