import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { readUsage, USAGE_LIMITS } from './usage.ts';

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

async function setClock(time: string): Promise<void> {
  await sql`CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    ${sql.lit(`SELECT timestamptz '${time}'`)}`.execute(db);
}

test('usage is reported by day, key and endpoint, with the remainder of today', async () => {
  const { id, keyId } = await createTestAccount(db, namespace, { tier: 'basic' });
  const other = await createTestAccount(db, namespace, { tier: 'basic' });
  await setClock('2026-03-01 06:00:00Z');
  const day = (name: string, used: number, account = id) =>
    sql`INSERT INTO usage_days VALUES (${account}, ${name}, ${used})`.execute(db);
  await day('2026-02-20', 999);
  await day('2026-02-27', 30);
  await day('2026-03-01', 250);
  await day('2026-03-01', 7, other.id);
  const call = (name: string, key: string, endpoint: string, calls: number, account = id) =>
    db
      .insertInto('usage_calls')
      .values({ account_id: account, day: name, key_id: key, endpoint, calls })
      .execute();
  await call('2026-02-20', keyId, 'GET /a', 999);
  await call('2026-02-27', keyId, 'GET /a', 30);
  await call('2026-03-01', keyId, 'GET /b', 200);
  await call('2026-03-01', 'key_deleted', 'GET /b', 50);
  await call('2026-03-01', other.keyId, 'GET /a', 7, other.id);
  const hour = (time: string, calls: number, account = id) =>
    sql`INSERT INTO usage_hours VALUES (${account}, ${time}, ${calls})`.execute(db);
  await hour('2026-02-27 06:00:00Z', 30);
  await hour('2026-02-27 07:00:00Z', 11);
  await hour('2026-03-01 06:00:00Z', 250);
  await hour('2026-03-01 06:00:00Z', 7, other.id);

  const usage = await readUsage(db, id, { days: 3 });
  expect(usage?.hours).toHaveLength(USAGE_LIMITS.hours);
  expect(usage?.hours.filter(({ calls }) => calls > 0)).toEqual([
    { hour: new Date('2026-02-27T07:00:00Z'), calls: 11 },
    { hour: new Date('2026-03-01T06:00:00Z'), calls: 250 },
  ]);
  expect(usage).toEqual({
    hours: expect.anything(),
    today: {
      day: '2026-03-01',
      used: 250,
      limit: 1_000,
      remaining: 750,
      resetsAt: new Date('2026-03-02T00:00:00Z'),
      projected: 1_000,
    },
    days: [
      { day: '2026-02-27', calls: 30 },
      { day: '2026-02-28', calls: 0 },
      { day: '2026-03-01', calls: 250 },
    ],
    keys: [
      {
        ...{ keyId, name: 'test', hint: expect.stringMatching(/^pil_live_…/), calls: 230 },
        // From 16 February on: also days before the requested ones.
        recentDays: [0, 0, 0, 0, 999, 0, 0, 0, 0, 0, 0, 30, 0, 200],
      },
      {
        ...{ keyId: 'key_deleted', name: null, hint: null, calls: 50 },
        recentDays: [...Array.from({ length: 13 }, () => 0), 50],
      },
    ],
    endpoints: [
      { endpoint: 'GET /b', calls: 250 },
      { endpoint: 'GET /a', calls: 30 },
    ],
  });
  const long = await readUsage(db, id, { days: 1e9 });
  expect(long?.days).toHaveLength(USAGE_LIMITS.daysMax);

  // There is no projection in the first 5 % of the day; at the end it equals the usage.
  await setClock('2026-03-01 01:11:59Z');
  expect((await readUsage(db, id, { days: 1 }))?.today.projected).toBeNull();
  await setClock('2026-03-01 01:12:00Z');
  expect((await readUsage(db, id, { days: 1 }))?.today.projected).toBe(5_000);
  await setClock('2026-03-01 23:59:59.9Z');
  expect((await readUsage(db, id, { days: 1 }))?.today).toMatchObject({ projected: 250 });
});

test.each([
  ['institutional' as const, undefined, { limit: null, remaining: null }],
  ['pro' as const, 5, { limit: 5, remaining: 5 }],
  [null, undefined, { limit: 0, remaining: 0 }],
])('the limit of %s with %s a day set is %j', async (tier, callsPerDay, expected) => {
  const more = callsPerDay === undefined ? {} : { callsPerDay };
  const { id } = await createTestAccount(db, namespace, { tier, ...more });
  expect((await readUsage(db, id, { days: 1 }))?.today).toMatchObject({ used: 0, ...expected });
});

test('an unknown account has no usage', async () => {
  expect(await readUsage(db, 'acc_none', { days: 1 })).toBeUndefined();
});
