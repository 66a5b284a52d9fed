import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Database } from '../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../testing/pills.ts';
import { getPort } from '../testing/ports.ts';
import { startProcess, type TestProcess } from '../testing/process.ts';
import { waitFor } from '../testing/wait.ts';
import { createClient } from './index.ts';
import { endRuns, runCli } from './testing/run-program.ts';

const SYMBOLS = ['S1.T', 'S2.T', 'S3.T', 'S4.T'];

let namespace: Namespace;
let writer: PillWriter;
let db: Database;
let latest: TestProcess;
let api: TestProcess;
let stream: TestProcess;
let apiUrl: string;
let streamPort: string;
let streamUrl: string;
let key: string;
let basicKey: string;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'pro' }));
  ({ key: basicKey } = await createTestAccount(db, namespace, { tier: 'basic' }));
  const apiPort = String(await getPort());
  streamPort = String(await getPort());
  apiUrl = `http://127.0.0.1:${apiPort}`;
  streamUrl = `ws://127.0.0.1:${streamPort}`;
  // One after another, since each start takes a second of a core.
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: apiPort,
    STREAM_URL: streamUrl,
  });
  await api.ready();
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  await latest.ready();
  stream = await startStream();
  await stream.ready();
});

afterEach(endRuns);

afterAll(async () => {
  await Promise.all([stream, api, latest].map((process) => process?.stop()));
  await writer?.close();
  await db?.destroy();
});

const startStream = () =>
  startProcess('gateway/stream/main.js', [], { ...namespace.env, STREAM_PORT: streamPort });

const client = (as = key) => createClient({ apiUrl, streamUrl, key: as });

/** Without the address of streams, which the API provides. */
const pillole = (args: readonly string[], as = key) =>
  runCli(args, { env: { PILLOLE_API_URL: apiUrl, PILLOLE_KEY: as } });

let written = 0;
/** Writes one pill of each symbol. */
async function writeRound() {
  written += 1;
  await writer.write(SYMBOLS.map((symbol) => makePill({ symbol, id: `r${written}` })));
}

test('latest: library and command line have a pill as soon as it is written', async () => {
  await writeRound();
  const { data, errors } = await waitFor('the pills', async () => {
    const answer = await client().latest([...SYMBOLS, 'NEVER.T']);
    return Object.keys(answer.data).length === SYMBOLS.length && answer;
  });
  expect(data['S1.T']).toMatchObject({ id: 'r1', symbol: 'S1.T' });
  expect(errors).toMatchObject({ 'NEVER.T': { code: 'no_pill' } });
  const run = pillole(['latest', 'S1.T']);
  expect(await run.exited).toBe(0);
  expect(run.stdout()).toMatch(/^TIME.*\n\S+ \S+ +S1\.T +0\.125 +open +87\.5 /);
});

test('verify: a pill is usable while it is young, and not later, by library and command line', async () => {
  const symbol = 'TEST:USABLE'; // its market is open at weekends too
  const send = (count: number) =>
    writer.write(
      Array.from({ length: count }, (_, n) =>
        makePill({ symbol, gross_spread_percent: 0.1 + (n % 10) / 100 }),
      ),
    );
  await send(40);
  const usable = await waitFor('a yes', async () => {
    await send(1);
    const answer = await client().usable(symbol);
    return answer.usable ? answer : answer.reason;
  });
  expect(usable).toMatchObject({ reason: 'verified', verdict: { market: { now: 'open' } } });
  expect(usable.validForMs).toBeGreaterThan(0);
  expect(usable.validForMs).toBeLessThanOrEqual(5_000);
  const cursor = usable.verdict!.pill!.cursor;
  const { id } = usable.verdict!.pill!;
  const one = await client().verify({ symbol, id });
  expect(one).toMatchObject({ published: true, subject: { symbol, id }, pill: { cursor } });
  expect(await client().verify({ id })).toMatchObject({ data: [{ subject: { symbol, id } }] });
  expect(await client().verify({ symbol, id: 'nope' })).toMatchObject({ verdict: 'unknown' });
  const many = await client().verify([symbol, 'NONE.T']);
  expect(Object.keys(many.data)).toEqual([symbol, 'NONE.T']);
  const stale = await waitFor('a no', async () => {
    const answer = await client().usable(symbol);
    // In between, the verdict may hold for less time than the request takes.
    return answer.verdict?.verdict === 'stale' && answer;
  });
  expect(stale).toMatchObject({ usable: false, validForMs: 0 });
  const run = pillole(['verify', symbol]);
  expect(await run.exited).toBe(6);
  expect(run.stdout()).toMatch(/^TEST:USABLE +no +stale +.*pill_too_old \(\d+(\.\d+)? s old/m);
});

test('a wrong key and a plan without streams are refused by name and not tried again', async () => {
  const wrong = key.slice(0, -4) + (key.endsWith('aaaa') ? 'bbbb' : 'aaaa');
  await expect(client(wrong).latest()).rejects.toMatchObject({ status: 401, retry: 'never' });
  for (const [as, code, closeCode] of [
    [wrong, 'key_invalid', 4501],
    [basicKey, 'tier_too_low', 4503],
  ] as const) {
    const events: string[] = [];
    const refused = client(as).stream({ symbols: SYMBOLS });
    // A PostgreSQL that is busy with other tests may leave the first lookup without an answer.
    refused.on('reconnecting', ({ error }) => {
      if (error.code !== 'accounts_unavailable') events.push(error.code);
    });
    const items = refused[Symbol.asyncIterator]();
    await expect(items.next()).rejects.toMatchObject({ code, closeCode, retry: 'never' });
    expect(events).toEqual([]);
  }
  const run = pillole(['tail', 'S1.T'], wrong);
  expect(await run.exited).toBe(3);
  expect(run.stderr()).toMatch(/Check PILLOLE_KEY/);
  const basic = pillole(['tail', 'S1.T'], basicKey);
  expect(await basic.exited).toBe(3);
  expect(basic.stderr()).toMatch(/Streams are part of Pro/);
});

test('429: the client waits as long as the server says, then gets its answer', async () => {
  const account = await createTestAccount(db, namespace, {
    tier: 'pro',
    ratePerS: 1,
    rateBurst: 1,
  });
  const statuses: number[] = [];
  const counted = createClient({
    apiUrl,
    key: account.key,
    async fetch(...call) {
      const response = await fetch(...call);
      statuses.push(response.status);
      return response;
    },
  });
  // At once: one after another, a token could refill in between on a slow machine.
  const calls = Array.from({ length: 3 }, () => counted.latest('S1.T'));
  for (const { data } of await Promise.all(calls)) expect(data.symbol).toBe('S1.T');
  expect(statuses).toContain(429);
  expect(statuses.filter((status) => status === 200)).toHaveLength(3);
});

test('429 of the daily quota is thrown, with the time until midnight', async () => {
  const account = await createTestAccount(db, namespace, { tier: 'basic', callsPerDay: 1 });
  await client(account.key).latest('S1.T');
  const error = await client(account.key)
    .latest('S1.T')
    .catch((thrown) => thrown);
  expect(error).toMatchObject({ status: 429, code: 'daily_quota_exceeded', retry: 'after' });
  const untilMidnightMs = 86_400_000 - (Date.now() % 86_400_000);
  expect(error.retryAfterMs).toBeGreaterThan(Math.min(10_000, untilMidnightMs - 60_000));
  expect(error.retryAfterMs).toBeLessThan(86_400_000 + 1_000);
  const run = pillole(['latest', 'S1.T'], account.key);
  expect(await run.exited).toBe(4);
});

test('over two kill -9 of the stream process: nothing lost or duplicated, everything in order', async () => {
  const from = written;
  const run = pillole(['tail', ...SYMBOLS, '--json']);
  const own = client().stream({ symbols: '*', snapshot: false });
  const got: { cursor: string; symbol: string; id: string }[] = [];
  const gaps: unknown[] = [];
  own.on('pill', (pill) => got.push(pill));
  own.on('gap', (gap) => gaps.push(gap));
  await waitFor(
    'library and command line to be live',
    () => own.state === 'live' && run.stdout().includes('"open"'),
  );
  for (let kill = 0; kill < 2; kill += 1) {
    for (let n = 0; n < 10; n += 1) await writeRound();
    const more = writeRound();
    await stream.kill(); // while pills are being written
    await more;
    for (let n = 0; n < 10; n += 1) await writeRound();
    stream = await startStream();
    await stream.ready();
    await writeRound();
  }
  const total = (written - from) * SYMBOLS.length;
  const printed = () => run.json().filter(({ type }) => type === 'pill') as unknown as typeof got;
  // The clients wait up to 30 s between attempts.
  await waitFor(
    'all pills to arrive',
    () => got.length >= total && printed().length >= total,
    180_000,
  );
  run.child.kill('SIGINT');
  expect(await run.exited).toBe(130);
  own.close();
  expect(gaps).toEqual([]);
  for (const pills of [got, printed()]) {
    for (const symbol of SYMBOLS) {
      const ids = pills.filter((pill) => pill.symbol === symbol).map(({ id }) => id);
      expect(ids).toEqual(Array.from({ length: written - from }, (_, n) => `r${from + n + 1}`));
    }
  }
  const reconnects = run.json().filter(({ type }) => type === 'reconnecting');
  expect(reconnects.length).toBeGreaterThanOrEqual(2);
  expect(run.json().filter(({ type }) => type === 'gap')).toEqual([]);
});

test('a stored position in another process: exactly the pills since then', async () => {
  const first = pillole(['tail', ...SYMBOLS, '--json', '--no-snapshot']);
  await waitFor('live', () => first.stdout().includes('"open"'));
  await writeRound();
  await waitFor('the round', () => first.json().filter((one) => one.type === 'pill').length === 4);
  first.child.kill('SIGTERM');
  expect(await first.exited).toBe(130);
  const position = String(first.json().at(-1)!.position);
  await writeRound();
  const next = `r${written}`;
  const second = pillole(['tail', ...SYMBOLS, '--json', '--resume', position, '-n', '4']);
  expect(await second.exited).toBe(0);
  const pills = second.json().filter(({ type }) => type === 'pill');
  expect(pills.map(({ id, replayed }) => [id, replayed])).toEqual(SYMBOLS.map(() => [next, true]));
});

test.each([
  ['epoch_unknown', () => 'other:0-1'],
  ['position_ahead', () => `${namespace.settings.epoch}:0-999999,1-999999,2-999999`],
])(
  'an unusable position (%s) is reported as a gap and by the exit code',
  async (reason, resume) => {
    const run = pillole(['tail', 'S1.T', '--resume', resume(), '-n', '1']);
    await waitFor('live', () => run.stderr().includes('Live'));
    await writeRound();
    expect(await run.exited).toBe(7);
    expect(run.stdout()).toContain(`--- gap: S1.T after ? until ? (${reason}); 0 pills`);
    expect(run.stderr()).toContain(`Not resumed: ${reason}.`);
  },
);
