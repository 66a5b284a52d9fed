import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAll } from '../../../lib/kafka/read-all.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { CHAOS_SYMBOL } from '../protocol/subscription.ts';
import { startStream } from '../testing/start-stream.ts';
import { type Client, closeClients, connect, framesOf } from '../testing/stream-client.ts';

let namespace: Namespace;
let writer: PillWriter;
let stream: TestProcess;
let url: string;
let key: string;
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-days-'));
const overridesPath = path.join(folder, 'days.json');
/** A broker that is busy with other tests may take longer than the 15 s of the default. */
const READ_MS = 60_000;

/** On any day: Tokyo trades all day, and Hong Kong has a typhoon. */
function writeOverrides(tokyo: unknown) {
  const dates = [-1, 0, 1].map((days) =>
    new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10),
  );
  const all = (day: unknown) => Object.fromEntries(dates.map((date) => [date, day]));
  writeFileSync(overridesPath, JSON.stringify({ XTKS: all(tokyo), XHKG: all('closed') }));
}

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'institutional' }));
  await db.destroy();
  writeOverrides({ open: '00:00', close: '24:00' });
  ({ stream, url } = await startStream({ ...namespace.env, CALENDAR_OVERRIDES: overridesPath }));
});

// The first two tests mostly wait, so they run at the same time, with clients of their own.
afterAll(async () => {
  closeClients();
  await stream?.stop();
  await writer?.close();
  rmSync(folder, { recursive: true });
});

async function subscribe(symbols: readonly string[]): Promise<Client> {
  const client = await connect(url, { key });
  client.send({ op: 'subscribe', symbols });
  await client.until('live');
  return client;
}

/** The reason of a day without a session, by the weekday at the venue. */
function restOf(hoursFromUtc: number): string {
  const weekday = new Date(Date.now() + hoursFromUtc * 3_600_000).getUTCDay();
  return weekday === 0 || weekday === 6 ? 'market_closed' : 'holiday';
}

/** Waits for a `quiet` frame of a symbol with a reason. */
function quiet(client: Client, symbol: string, reason: string, over?: true) {
  return waitFor(`${symbol} ${reason} ${over ?? ''}`, () =>
    framesOf(client.frames, 'quiet').find(
      (frame) => frame.symbol === symbol && frame.reason === reason && frame.over === over,
    ),
  );
}

test.concurrent('each silence has its reason, until a pill ends it', async () => {
  const symbols = ['7203.T', '0700.HK', 'TEST:NEVER', 'BTC/USD'];
  const client = await subscribe(symbols);
  const star = await subscribe(['*']);
  await quiet(client, 'TEST:NEVER', 'never_seen');
  await writer.write(['7203.T', '0700.HK', 'BTC/USD'].map((symbol) => makePill({ symbol })));
  const late = await quiet(client, '7203.T', 'generator_late');
  expect(late).toMatchObject({ venue: 'XTKS', until: null, late_after_ms: 5_000 });
  expect(Date.parse(late.since!)).toBeLessThan(Date.now());
  expect(await quiet(client, '0700.HK', restOf(8))).toMatchObject({ venue: 'XHKG' });
  await quiet(client, 'BTC/USD', 'calendar_unknown');
  await quiet(client, '*', 'generator_silent');
  const summaries = () => framesOf(star.frames, 'quiet').filter(({ count }) => count !== undefined);
  await waitFor('a summary of each venue', () => {
    const venues = new Set(summaries().map(({ venue }) => venue));
    return venues.size >= 3 || [...venues].join();
  });
  expect(summaries()).toContainEqual(expect.objectContaining({ venue: 'XHKG', count: 1 }));
  const heartbeat = await waitFor('a heartbeat with the state', async () => {
    const next = await star.until('heartbeat');
    return next.generator.state === 'silent' && next;
  });
  expect(heartbeat.generator.in_session).toBe(true);
  // Five times the median interval: a pill of the other test may have lengthened it.
  expect(heartbeat.generator.late_after_ms).toBeGreaterThanOrEqual(5_000);

  await writer.write([makePill({ symbol: '7203.T' })]);
  expect(await quiet(client, '7203.T', 'generator_late', true)).toMatchObject({
    since: late.since,
    until: expect.any(String),
  });
  await quiet(client, '*', 'generator_silent', true);
  // The symbol gets its usual cadence again, so that the previous silence does not lengthen its
  // deadline.
  await waitFor('a fast cadence', async () => {
    await writer.write([makePill({ symbol: '7203.T' })]);
    return client.pills().filter(({ symbol }) => symbol === '7203.T').length > 12;
  });
  // A typhoon in Tokyo, too.
  writeOverrides('closed');
  await quiet(client, '7203.T', restOf(9));
  const newcomer = await subscribe(['0700.HK']);
  await quiet(newcomer, '0700.HK', restOf(8));
});

test.concurrent('TEST:CHAOS runs its half minute for a client that reconnects; another is not affected', async () => {
  const other = await subscribe(['*']);
  const codes: number[] = [];
  const types = new Set<string>();
  const wanted = ['gap', 'drain', 'error', 'heartbeat'];
  // The schedule may be at any step: both closes may come before the gap.
  while (new Set(codes).size < 2 || !wanted.every((type) => types.has(type))) {
    const client = await subscribe([CHAOS_SYMBOL]);
    codes.push((await client.closed).code);
    for (const { type } of client.frames) types.add(type);
  }
  expect(new Set(codes)).toEqual(new Set([4000, 4001]));
  // No chaos pill is in the log, and the other client is not affected.
  const pill = makePill({ symbol: 'CALM.T' });
  await writer.write([pill]);
  const ofSymbol = (symbol: string) => other.pills().filter((one) => one.symbol === symbol);
  await waitFor('the pill', () => ofSymbol(pill.symbol).length > 0);
  expect(ofSymbol(pill.symbol).map(({ id }) => id)).toEqual([pill.id]);
  expect(ofSymbol(CHAOS_SYMBOL)).toEqual([]);
  const records = await readAll(namespace.client, topicName(namespace.name, 'pills'), READ_MS);
  const symbols = new Set(records.map(({ key }) => String(key)));
  expect([symbols.has(pill.symbol), symbols.has(CHAOS_SYMBOL)]).toEqual([true, false]);
});

test.each([
  [
    'is not there',
    () => '/nowhere/days.json',
    /^stream cannot start: .*CALENDAR_OVERRIDES .* cannot be read/,
  ],
  [
    'is faulty',
    () => overridesPath,
    /^stream cannot start: .*CALENDAR_OVERRIDES .* is faulty: XNYS: unknown venue/,
  ],
])('a file of overrides that %s refuses the start', async (_, pathOf, sentence) => {
  writeFileSync(overridesPath, '{"XNYS":{}}');
  const refused = await startProcess('gateway/stream/main.js', [], {
    ...namespace.env,
    STREAM_PORT: '0',
    CALENDAR_OVERRIDES: pathOf(),
  });
  expect(await refused.exited).not.toBe(0);
  expect(refused.output()).toMatch(sentence);
});
