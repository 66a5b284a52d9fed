import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createTestAccount, openTestDatabase } from '../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { CHAOS_SYMBOL } from '../chaos/chaos-schedule.ts';
import { type Client, closeClients, connect, framesOf } from '../testing/client.ts';

let namespace: Namespace;
let writer: PillWriter;
let stream: TestProcess;
let url: string;
let key: string;
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-days-'));
const overridesPath = path.join(folder, 'days.json');

/** Whatever day it is: Tokyo trades all day long, in Hong Kong there is a typhoon. */
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
  stream = await startProcess('gateway/stream/main.js', [], {
    ...namespace.env,
    STREAM_PORT: '0',
    CALENDAR_OVERRIDES: overridesPath,
  });
  await stream.ready();
  url = /"url":"(ws:[^"]+)"/.exec(stream.output())![1]!;
});

afterEach(closeClients);

afterAll(async () => {
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

/** What a day without a session is called: by the venue's own weekday. */
function restOf(hoursFromUtc: number): string {
  const weekday = new Date(Date.now() + hoursFromUtc * 3_600_000).getUTCDay();
  return weekday === 0 || weekday === 6 ? 'market_closed' : 'holiday';
}

/** Pills that the process has read from the log. */
async function countRecords(): Promise<number> {
  const text = await (await fetch(`${stream.opsUrl}/metrics`)).text();
  return Number(/stream_records_total\{outcome="effect"\} (\d+)/.exec(text)![1]);
}

/** Waits for a `quiet` frame of a symbol with a reason. */
function quiet(client: Client, symbol: string, reason: string, over?: true) {
  return waitFor(`${symbol} ${reason} ${over ?? ''}`, () =>
    framesOf(client.frames, 'quiet').find(
      (frame) => frame.symbol === symbol && frame.reason === reason && frame.over === over,
    ),
  );
}

test('each silence has its reason, until a pill ends it', async () => {
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
  const sums = await waitFor('the sums', () => {
    const frames = framesOf(star.frames, 'quiet').filter(({ count }) => count !== undefined);
    return frames.length >= 3 && frames;
  });
  expect(sums).toContainEqual(expect.objectContaining({ venue: 'XHKG', count: 1 }));
  const heartbeat = await waitFor('a heartbeat that says so', async () => {
    const next = await star.until('heartbeat');
    return next.generator.state === 'silent' && next;
  });
  expect(heartbeat.generator).toMatchObject({ in_session: true, late_after_ms: 5_000 });

  await writer.write([makePill({ symbol: '7203.T' })]);
  expect(await quiet(client, '7203.T', 'generator_late', true)).toMatchObject({
    since: late.since,
    until: expect.any(String),
  });
  await quiet(client, '*', 'generator_silent', true);
  // Its usual pace again, so that the silence before does not make it patient.
  await waitFor('a quick pace', async () => {
    await writer.write([makePill({ symbol: '7203.T' })]);
    return client.pills().filter(({ symbol }) => symbol === '7203.T').length > 12;
  });
  // A typhoon in Tokyo, too.
  writeOverrides('closed');
  await quiet(client, '7203.T', restOf(9));
  const newcomer = await subscribe(['0700.HK']);
  await quiet(newcomer, '0700.HK', restOf(8));
}, 90_000);

test('TEST:CHAOS plays its half minute to one client, who comes back; another notices nothing', async () => {
  const other = await subscribe(['*']);
  const before = await countRecords();
  const codes: number[] = [];
  const types = new Set<string>();
  const wanted = ['gap', 'drain', 'error', 'heartbeat'];
  // It begins wherever the schedule is: both closes may come before the gap.
  while (new Set(codes).size < 2 || !wanted.every((type) => types.has(type))) {
    const client = await subscribe([CHAOS_SYMBOL]);
    codes.push((await client.closed).code);
    for (const { type } of client.frames) types.add(type);
  }
  expect(new Set(codes)).toEqual(new Set([4000, 4001]));
  // Nothing of it is in the log, and the other goes on.
  const pill = makePill({ symbol: 'CALM.T' });
  await writer.write([pill]);
  await waitFor('the pill', () => other.pills().length > 0);
  expect(other.pills().map(({ id }) => id)).toEqual([pill.id]);
  expect(await countRecords()).toBe(before + 1);
}, 150_000);

test.each([
  [
    'is not there',
    () => '/nowhere/days.json',
    /^stream cannot start: .*CALENDAR_OVERRIDES .* cannot be read/,
  ],
  [
    'is faulty',
    () => overridesPath,
    /^stream cannot start: .*CALENDAR_OVERRIDES .* is faulty: XNYS: no such/,
  ],
])('a file of overrides that %s refuses the start', async (_, place, sentence) => {
  writeFileSync(overridesPath, '{"XNYS":{}}');
  const refused = await startProcess('gateway/stream/main.js', [], {
    ...namespace.env,
    STREAM_PORT: '0',
    CALENDAR_OVERRIDES: place(),
  });
  expect(await refused.exited).not.toBe(0);
  expect(refused.output()).toMatch(sentence);
});
