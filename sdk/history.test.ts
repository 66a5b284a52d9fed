// A client that was cut off over a restart of the stream, while the log was cut to its retention: the
// gap that it is told of is filled from history, over the wire, exactly and without a call.
import getPort from 'get-port';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { nowMicros } from '../lib/clock.ts';
import { withAdmin } from '../lib/kafka/client.ts';
import type { Database } from '../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../lib/testing/accounts.ts';
import { startIngest } from '../lib/testing/ingest.ts';
import { createNamespace, type Namespace } from '../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../lib/testing/process.ts';
import { waitFor } from '../lib/testing/wait.ts';
import { formatTimestamp } from '../schemas/timestamp.ts';
import { topicName } from '../schemas/topics.ts';
import { createClient, type StreamItem } from './index.ts';
import { endRuns, runCli } from './testing/run.ts';

const SYMBOLS = ['7203.T', '9984.T', 'D05.SI'];
/** More than a page of them. */
const MISSED = 5_200;

let namespace: Namespace;
let writer: PillWriter;
let db: Database;
let key: string;
let ingest: Awaited<ReturnType<typeof startIngest>>;
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
  ingest = await startIngest(namespace);
  await ingest.process.ready();
  processes.push(ingest.process);
  stream = await startStream();
});

afterEach(endRuns);
afterAll(async () => {
  await Promise.all([...processes, stream].map((process) => process?.stop()));
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

/** One live pill of each symbol, as a generator sends them. */
async function round(): Promise<void> {
  sent += 1;
  for (const symbol of SYMBOLS) {
    const id = `${symbol} ${sent}`;
    const pill = { id, symbol, timestamp: formatTimestamp(nowMicros()) };
    const answer = await fetch(`${ingest.url}/api/pillole`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        ...pill,
        gross_spread_percent: 0.1,
        market_state: 'open',
        confidence: 90,
      }),
    });
    expect(answer.status).toBe(200);
    live.push(id);
  }
}

/** Waits until history has all up to a position. */
const stored = (position: string) =>
  waitFor('history', async () => {
    const { data } = await client().history({ until: position, limit: 1 });
    return data.length === 1;
  });

/** Cuts the log to nothing, as its retention would: history alone has what was. */
async function cutLog(): Promise<void> {
  const topic = topicName(namespace.name, 'pills');
  await withAdmin(namespace.client, async (admin) => {
    const offsets = await admin.fetchTopicOffsets(topic);
    const partitions = offsets.map(({ partition, high }) => ({ partition, offset: high }));
    await admin.deleteTopicRecords({ topic, partitions });
  });
}

test('a gap is filled for real: each live pill once, in order, free of charge', async () => {
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
  for (let n = 0; n < 3; n += 1) await round();
  await waitFor('the first pills', () => idsOf().length === live.length);

  await stream.kill();
  for (let n = 0; n < 5; n += 1) await round();
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
  await round();
  const { position } = await waitFor('the view to have the last of them', async () => {
    const { data, position } = await client().latest(SYMBOLS);
    return SYMBOLS.every((symbol) => data[symbol]?.id === `${symbol} ${sent}`) && { position };
  });
  await stored(position);
  await cutLog();
  const { used } = (await client().usage()).today;
  stream = await startStream();
  await waitFor('the way back', () => followed.state === 'live', 60_000);
  await round();
  await waitFor('all of it', () => idsOf().length >= live.length, 60_000).catch(() => undefined);
  followed.close();
  await reading;

  const gaps = items.flatMap((item) => (item.type === 'gap' ? [item] : []));
  expect(
    gaps.map(({ symbols, filled, reason, error }) => ({ symbols, filled, reason, error })),
  ).toEqual(
    SYMBOLS.map((symbol) => ({
      ...{ symbols: [symbol], filled: true, reason: 'position_expired', error: undefined },
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
}, 150_000);

test('history by time: the iterator and the command line read all pages', async () => {
  const [symbol] = SYMBOLS;
  await stored((await client().latest()).position);
  const from = new Date(Date.now() - 2 * 3_600_000);
  const range = client().history(symbol!, from);
  const got: string[] = [];
  for await (const pill of range) got.push(pill.id);
  const own = live.filter((id) => id.startsWith('missed') || id.startsWith(symbol!));
  expect(got[0]).toBe('old'); // an hour ago by its own time
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
  const some = run('--from', from.toISOString(), '-n', '3');
  expect(await some.exited).toBe(0);
  expect(some.stdout().trimEnd().split('\n')).toHaveLength(4);
  expect(some.stdout()).toMatch(/^TIME \(UTC\) .*\n.* backfill\n/);
  const none = run('--from', from.toISOString(), '--to', new Date(+from + 1_000).toISOString());
  expect(await none.exited).toBe(6);
  const long = run('--from', '2020-01-01T00:00:00Z');
  expect(await long.exited).toBe(2);
  expect(long.stderr()).toMatch(/to=2020-02-01T00:00:00\.000000Z would fit/);
}, 60_000);
