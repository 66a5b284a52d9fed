import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { createMeteredCall, usedCalls, usedCallsByKey } from '../../testing/metered-call.ts';
import { seededRandom, testSeed } from '../../testing/seed.ts';
import { waitFor } from '../../testing/wait.ts';
import type { MeteredCall, MeterVerdict } from './account-access.ts';
import { type Meter, openMeter } from './meter.ts';
import { TIERS, type Tier } from './tiers.ts';

let namespace: DatabaseNamespace;
let db: Database;
const meters: Meter[] = [];
/** The product's second may pass on a busy machine, and these tests are not about the deadline. */
const DEADLINE_MS = 60_000;
/** A clock that runs from noon on, so that no test runs over midnight UTC by chance. */
const NOON = `timestamptz '2031-06-15 12:00:00Z' + (clock_timestamp() - timestamptz '${new Date().toISOString()}')`;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  await setClock(NOON);
});
afterEach(async () => {
  await closeMeters();
});
afterAll(async () => {
  await db.destroy();
});

async function closeMeters(): Promise<void> {
  await Promise.all(meters.splice(0).map((meter) => meter.close()));
}

/** Opens meters that stand for as many processes. */
function openMeters(count: number): Meter[] {
  for (let i = 0; i < count; i += 1) {
    meters.push(
      openMeter({
        databaseUrl: namespace.engines.postgresUrl,
        namespace: namespace.name,
        log: silentLog,
        name: `meter-${i}`,
        deadlineMs: DEADLINE_MS,
      }),
    );
  }
  return meters;
}

const createCall = (tier: Tier, callsPerDay?: number) =>
  createMeteredCall(db, namespace, tier, callsPerDay);
const usedOf = (accountId: string) => usedCalls(db, accountId);
const usedByKey = (accountId: string) => usedCallsByKey(db, accountId);

function withLimit(call: MeteredCall, callsPerDay: number): MeteredCall {
  return { ...call, account: { ...call.account, callsPerDay } };
}

function takeTimes(meter: Meter, call: MeteredCall, times: number): Promise<MeterVerdict>[] {
  return Array.from({ length: times }, async () => meter.take(call));
}

function kinds(taken: readonly MeterVerdict[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of taken) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** Sets the quota clock of this namespace. */
async function setClock(expression: string): Promise<void> {
  await sql
    .raw(
      `CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE
       AS $$SELECT ${expression}$$`,
    )
    .execute(db);
}

test.each([1, 7, 100, 250, 399])(
  'of 400 parallel calls over 4 processes, exactly the %i that are left pass',
  async (left) => {
    const call = await createCall('basic', left);
    const taken = await Promise.all(openMeters(4).flatMap((meter) => takeTimes(meter, call, 100)));
    expect(kinds(taken)).toEqual({ granted: left, quota_exceeded: 400 - left });
    expect(await usedOf(call.account.id)).toBe(left);
    await closeMeters();
    expect(await usedByKey(call.account.id)).toBe(left);
  },
);

test('many accounts from 4 processes get exactly their own limits, without a deadlock', async () => {
  console.log(`TEST_SEED=${testSeed}`);
  const random = seededRandom();
  const limits = Array.from({ length: 12 }, () => 1 + Math.floor(random() * 60));
  const calls = await Promise.all(limits.map((limit) => createCall('pro', limit)));
  const opened = openMeters(4);
  const asked = new Map<string, number>();
  const granted = new Map<string, number>();
  const taken: MeterVerdict[] = [];
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(
      Array.from({ length: 120 }, async () => {
        const call = calls[Math.floor(random() * calls.length)]!;
        const meter = opened[Math.floor(random() * opened.length)]!;
        const { id } = call.account;
        asked.set(id, (asked.get(id) ?? 0) + 1);
        const one = await meter.take(call);
        taken.push(one);
        if (one.kind === 'granted') granted.set(id, (granted.get(id) ?? 0) + 1);
      }),
    );
  }
  expect(kinds(taken).unavailable).toBeUndefined();
  await closeMeters();
  for (const [i, { account }] of calls.entries()) {
    const expected = Math.min(limits[i]!, asked.get(account.id) ?? 0);
    expect(granted.get(account.id) ?? 0, `account ${i}`).toBe(expected);
    expect(await usedOf(account.id)).toBe(expected);
    expect(await usedByKey(account.id)).toBe(expected);
  }
});

test('calls get the remainder in order of arrival, and a refusal says when the day ends', async () => {
  const call = await createCall('basic', 3);
  const taken = await Promise.all(takeTimes(openMeters(1)[0]!, call, 4));
  expect(taken.slice(0, 3).map((one) => (one.kind === 'granted' ? one.daily : one))).toMatchObject([
    { limit: 3, remaining: 2, windowS: 86_400 },
    { limit: 3, remaining: 1, windowS: 86_400 },
    { limit: 3, remaining: 0, windowS: 86_400 },
  ]);
  expect(taken[3]).toMatchObject({
    kind: 'quota_exceeded',
    used: 3,
    resetsAt: '2031-06-16T00:00:00.000000Z',
    daily: { limit: 3, remaining: 0 },
  });
});

test('a call refused by the burst limit does not count for the day', async () => {
  const call = await createCall('basic', 100);
  const account = { ...call.account, ratePerS: 1, rateBurst: 2 };
  const taken = await Promise.all(takeTimes(openMeters(1)[0]!, { ...call, account }, 5));
  expect(kinds(taken)).toEqual({ granted: 2, rate_limited: 3 });
  expect(taken[4]).toMatchObject({ retryAfterS: 1, burst: { limit: 2, remaining: 0 } });
  expect(await usedOf(call.account.id)).toBe(2);
});

test('80, 95 and 100 % raise one event each, even with 4 concurrent processes', async () => {
  const call = await createCall('basic', 200);
  await Promise.all(openMeters(4).flatMap((meter) => takeTimes(meter, call, 80)));
  const events = await db
    .selectFrom('account_events')
    .select(['type', 'dedupe', 'data'])
    .where('account_id', '=', call.account.id)
    .orderBy('id')
    .execute();
  expect(events.map(({ data }) => data.percent)).toEqual([80, 95, 100]);
  expect(events.map(({ type }) => type)).toEqual(Array(3).fill('quota.warning'));
  expect(events.at(-1)!.data).toMatchObject({ policy: 'daily', used: 200, limit: 200 });
});

test('a call that is given back is available to another process', async () => {
  const call = await createCall('basic', 5);
  const [one, other] = openMeters(2);
  await Promise.all(takeTimes(one!, call, 5));
  expect((await other!.take(call)).kind).toBe('quota_exceeded');
  one!.giveBack(call);
  await waitFor('one more call', async () => (await other!.take(call)).kind === 'granted');
  expect((await other!.take(call)).kind).toBe('quota_exceeded');
  await closeMeters();
  expect(await usedOf(call.account.id)).toBe(5);
  expect(await usedByKey(call.account.id)).toBe(5);
});

test('a raised limit is honoured by the next call', async () => {
  const call = await createCall('basic', 5);
  const [meter] = openMeters(1);
  await Promise.all(takeTimes(meter!, call, 6));
  expect((await meter!.take(withLimit(call, 5))).kind).toBe('quota_exceeded');
  expect(await meter!.take(withLimit(call, 7))).toMatchObject({
    kind: 'granted',
    daily: { limit: 7, remaining: 1 },
  });
});

test('calls without a daily limit pass at once and are all counted after a close', async () => {
  const call = await createCall('institutional');
  const other = { ...call, endpoint: 'GET /api/pills' };
  const [one, two] = openMeters(2);
  for (let i = 0; i < 500; i += 1) {
    expect(one!.take(call)).toMatchObject({ kind: 'granted', daily: undefined });
    expect(two!.take(other)).toMatchObject({ kind: 'granted', daily: undefined });
  }
  two!.giveBack(other);
  await closeMeters();
  expect(await usedOf(call.account.id)).toBe(999);
  const rows = await db
    .selectFrom('usage_calls')
    .select(['endpoint', 'calls'])
    .where('account_id', '=', call.account.id)
    .orderBy('endpoint')
    .execute();
  expect(rows).toEqual([
    { endpoint: 'GET /api/pills', calls: '499' },
    { endpoint: call.endpoint, calls: '500' },
  ]);
  const { rows: hours } = await sql<{ calls: string }>`
    SELECT sum(calls) AS calls FROM usage_hours WHERE account_id = ${call.account.id}`.execute(db);
  expect(hours).toEqual([{ calls: '999' }]);
});

test('peek reports the whole limit at first, then the calls of other processes too', async () => {
  const call = await createCall('basic');
  const limit = TIERS.basic.callsPerDay!;
  const [one, other] = openMeters(2);
  await Promise.all(takeTimes(one!, call, 10));
  expect(one!.peek(call.account).daily).toMatchObject({ limit, remaining: limit - 10 });
  expect(other!.peek(call.account).daily).toMatchObject({ limit, remaining: limit });
  await waitFor(
    'the count to be known',
    () => other!.peek(call.account).daily?.remaining === limit - 10,
  );
  expect(await usedOf(call.account.id)).toBe(10);
  const institutional = await createCall('institutional');
  expect(one!.peek(institutional.account).daily).toBeUndefined();
});

test('an erased account is unavailable and does not block other accounts', async () => {
  const gone = await createCall('basic');
  const call = await createCall('basic');
  await db.deleteFrom('accounts').where('id', '=', gone.account.id).execute();
  const [meter] = openMeters(1);
  const taken = await Promise.all([meter!.take(gone), meter!.take(call)]);
  expect(taken.map(({ kind }) => kind)).toEqual(['unavailable', 'granted']);
});

test('counts restart at midnight by the clock of PostgreSQL', async () => {
  const call = await createCall('basic', 10);
  const free = await createCall('institutional');
  try {
    await setClock(`timestamptz '2031-12-31 23:59:30Z'`);
    const [meter] = openMeters(1);
    const before = await Promise.all(takeTimes(meter!, call, 12));
    expect(kinds(before)).toEqual({ granted: 10, quota_exceeded: 2 });
    expect(before[11]).toMatchObject({
      resetsAt: '2032-01-01T00:00:00.000000Z',
      daily: { resetS: 30 },
    });
    meter!.take(free);
    await waitFor('the count of the old year', async () => (await usedOf(free.account.id)) === 1);

    await setClock(`timestamptz '2032-01-01 00:00:00Z'`);
    const first = await waitFor('the new day', async () => {
      const taken = await meter!.take(call);
      return taken.kind === 'granted' ? taken : taken.kind;
    });
    expect(first.daily).toMatchObject({ limit: 10, remaining: 9, resetS: 86_400 });
    meter!.take(free);
    await closeMeters();
    for (const { account } of [call, free]) {
      const days = await db
        .selectFrom('usage_days')
        .select([sql<string>`day::text`.as('day'), 'used'])
        .where('account_id', '=', account.id)
        .orderBy('day')
        .execute();
      const calls = await db
        .selectFrom('usage_calls')
        .select([sql<string>`day::text`.as('day'), 'calls as used'])
        .where('account_id', '=', account.id)
        .orderBy('day')
        .execute();
      const usedBefore = account === call.account ? '10' : '1';
      expect(days).toEqual([
        { day: '2031-12-31', used: usedBefore },
        { day: '2032-01-01', used: '1' },
      ]);
      expect(calls).toEqual(days);
    }
  } finally {
    await setClock(NOON);
  }
});
