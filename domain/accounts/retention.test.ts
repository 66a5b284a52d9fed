import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { waitFor } from '../../testing/wait.ts';
import { newId } from '../access/id.ts';
import {
  AUDIT_KEPT_DAYS,
  pruneOld,
  SECURITY_EVENTS_KEPT_DAYS,
  SERVICE_KEPT_DAYS,
  startRetention,
  USAGE_HOURS_KEPT_DAYS,
  USAGE_KEPT_DAYS,
} from './retention.ts';
import { SESSION_IDLE_S } from './sessions.ts';
import { readUsage } from './usage.ts';

const NOTHING = {
  usage_days: 0,
  usage_calls: 0,
  usage_hours: 0,
  desk_usage_days: 0,
  latency_hours: 0,
  availability_hours: 0,
  service_incidents: 0,
  audit_log: 0,
  security_events: 0,
  sessions: 0,
  mail_tokens: 0,
  stream_tickets: 0,
  invitations: 0,
  sign_in_networks: 0,
};

let namespace: DatabaseNamespace;
let db: Database;
let accountId: string;
let userId: string;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  await sql`TRUNCATE accounts, audit_log, audit_chains, security_events CASCADE`.execute(db);
  accountId = (await createTestAccount(db, namespace, { tier: 'basic' })).id;
  userId = newId('usr');
  const email = `${userId}@example.com`;
  const user = { id: userId, account_id: accountId, email, password_hash: '-' };
  await db.insertInto('users').values(user).execute();
});

/** Inserts usage of an account `daysAgo` UTC days before today. */
async function use(daysAgo: number, account = accountId): Promise<void> {
  const day = sql`(quota_now() AT TIME ZONE 'UTC')::date - ${daysAgo}::int`;
  await sql`INSERT INTO usage_days VALUES (${account}, ${day}, 7)`.execute(db);
  await sql`INSERT INTO usage_calls VALUES (${account}, ${day}, 'key_a', 'GET /a', 4),
    (${account}, ${day}, 'key_b', 'GET /a', 3)`.execute(db);
}

const audit = (text: string, ago: string) =>
  sql`INSERT INTO audit_log (actor, action, at)
    VALUES ('system', ${text}, now() - ${ago}::interval)`.execute(db);
const session = (name: string, { ends, seen }: { ends: string; seen: string }) =>
  sql`INSERT INTO sessions (hash, user_id, csrf_token, address, expires_at, last_seen_at)
    VALUES (${randomBytes(32)}, ${userId}, ${name}, '', now() + ${ends}::interval,
      now() - ${seen}::interval)`.execute(db);
const token = (ends: string) =>
  sql`INSERT INTO mail_tokens (hash, user_id, purpose, expires_at)
    VALUES (${randomBytes(32)}, ${userId}, 'reset_password', now() + ${ends}::interval)`.execute(
    db,
  );
const ticket = (ends: string) =>
  sql`INSERT INTO stream_tickets (hash, account_id, expires_at)
    VALUES (${randomBytes(32)}, ${accountId}, now() + ${ends}::interval)`.execute(db);

async function count(table: keyof typeof NOTHING): Promise<number> {
  const query = sql<{ rows: string }>`SELECT count(*) AS rows FROM ${sql.table(table)}`;
  return Number((await query.execute(db)).rows[0]?.rows);
}

describe('pruning deletes only', () => {
  test('usage before the last 400 days', async () => {
    for (const days of [USAGE_KEPT_DAYS + 300, USAGE_KEPT_DAYS, USAGE_KEPT_DAYS - 1, 0]) {
      await use(days);
    }
    expect(await pruneOld(db)).toEqual({ ...NOTHING, usage_days: 2, usage_calls: 4 });
    const usage = await readUsage(db, accountId, { days: USAGE_KEPT_DAYS });
    expect(usage?.days.filter(({ calls }) => calls > 0)).toEqual([
      { day: usage?.days[0]?.day, calls: 7 },
      { day: usage?.today.day, calls: 7 },
    ]);
    expect(usage?.keys.map(({ calls }) => calls)).toEqual([8, 6]);
  });

  test('usage older than 13 months, for months of any length', async () => {
    const { rows } = await sql<{ days: number }>`
      SELECT max(day::date - (day - interval '13 months')::date) AS days
      FROM generate_series(timestamp '2024-01-01', '2032-01-01', '1 day') day`.execute(db);
    expect(rows[0]!.days).toBeLessThan(USAGE_KEPT_DAYS);
  });

  test('usage by hour older than 32 days, and the history of the service older than 400', async () => {
    for (const days of [USAGE_HOURS_KEPT_DAYS + 1, USAGE_HOURS_KEPT_DAYS - 1]) {
      await sql`INSERT INTO usage_hours VALUES (${accountId},
        date_trunc('hour', quota_now()) - make_interval(days => ${days}), 7)`.execute(db);
    }
    for (const days of [SERVICE_KEPT_DAYS + 1, SERVICE_KEPT_DAYS - 1]) {
      const time = sql`date_trunc('hour', now()) - make_interval(days => ${days})`;
      await sql`INSERT INTO latency_hours VALUES (${time}, 'stream', '{1}')`.execute(db);
      await sql`INSERT INTO availability_hours VALUES (${time}, 60, 0)`.execute(db);
      await sql`INSERT INTO service_incidents
        VALUES (${newId('inc')}, 'log', ${time}, ${time}, true)`.execute(db);
    }
    expect(await pruneOld(db)).toEqual({
      ...NOTHING,
      ...{ usage_hours: 1, latency_hours: 1, availability_hours: 1, service_incidents: 1 },
    });
  });

  test('audit entries older than a year, including those of the platform', async () => {
    await audit('old', `${AUDIT_KEPT_DAYS} days 1 minute`);
    await audit('kept', `${AUDIT_KEPT_DAYS - 1} days 23 hours 50 minutes`);
    // Written later, by a transaction that began earlier: the entry waits for the one before it.
    await audit('old too', `${AUDIT_KEPT_DAYS} days 2 minutes`);
    await audit('new', '0');
    expect(await pruneOld(db)).toEqual({ ...NOTHING, audit_log: 1 });
    const left = await db.selectFrom('audit_log').select('action').orderBy('id').execute();
    expect(left.map(({ action }) => action)).toEqual(['kept', 'old too', 'new']);
  });

  test('counts of security events older than 30 days', async () => {
    const network = '198.51.100.7';
    for (const days of [SECURITY_EVENTS_KEPT_DAYS + 1, SECURITY_EVENTS_KEPT_DAYS - 1]) {
      await sql`INSERT INTO security_events VALUES
        (now() - make_interval(days => ${days}), 'api', 'key_refused', ${network}, 3)`.execute(db);
    }
    expect(await pruneOld(db)).toEqual({ ...NOTHING, security_events: 1 });
  });

  test('sessions that have expired or were idle', async () => {
    await session('ended', { ends: '-1 second', seen: '0' });
    await session('idle', { ends: '1 day', seen: `${SESSION_IDLE_S + 1} seconds` });
    await session('open', { ends: '1 day', seen: `${SESSION_IDLE_S - 60} seconds` });
    expect(await pruneOld(db)).toEqual({ ...NOTHING, sessions: 2 });
    const left = await db.selectFrom('sessions').select('csrf_token').execute();
    expect(left).toEqual([{ csrf_token: 'open' }]);
  });

  test('networks without a sign-in for 90 days', async () => {
    await sql`INSERT INTO sign_in_networks VALUES
      (${userId}, '192.0.2.1', now() - interval '90 days'),
      (${userId}, '192.0.2.2', now() - interval '89 days')`.execute(db);
    expect(await pruneOld(db)).toEqual({ ...NOTHING, sign_in_networks: 1 });
    const left = await db.selectFrom('sign_in_networks').select('network').execute();
    expect(left).toEqual([{ network: '192.0.2.2' }]);
  });

  test('expired mail tokens and stream tickets', async () => {
    for (const ends of ['-1 second', '-3 days', '1 minute']) {
      await token(ends);
      await ticket(ends);
    }
    expect(await pruneOld(db)).toEqual({ ...NOTHING, mail_tokens: 2, stream_tickets: 2 });
    expect([await count('mail_tokens'), await count('stream_tickets')]).toEqual([1, 1]);
  });
});

test('a round is bounded, and later rounds delete the remaining rows', async () => {
  const others = await Promise.all(
    [1, 2].map(() => createTestAccount(db, namespace, { tier: 'basic' })),
  );
  for (const id of [accountId, ...others.map((other) => other.id)]) {
    for (let days = 0; days < 5; days += 1) await use(USAGE_KEPT_DAYS + days, id);
    await use(1, id);
  }
  for (let entry = 0; entry < 9; entry += 1) await audit('old', '2 years');
  for (let entry = 0; entry < 9; entry += 1) await token('-1 day');
  const bounds = { batchRows: 2, batchesMax: 3 };
  expect(await pruneOld(db, bounds)).toEqual({
    ...NOTHING,
    usage_days: 6,
    usage_calls: 6,
    audit_log: 6,
    mail_tokens: 6,
  });
  await pruneOld(db, { batchRows: 4, batchesMax: 100 });
  expect(await count('usage_days')).toBe(3);
  expect(await count('usage_calls')).toBe(6);
  expect(await count('audit_log')).toBe(0);
  expect(await count('mail_tokens')).toBe(0);
  expect(await pruneOld(db)).toEqual(NOTHING);
});

test('concurrent processes delete each row once and skip locked rows', async () => {
  for (let entry = 0; entry < 40; entry += 1) await token('-1 day');
  const bounds = { batchRows: 3, batchesMax: 100 };
  await db.transaction().execute(async (tx) => {
    await sql`SELECT 1 FROM mail_tokens LIMIT 1 FOR UPDATE`.execute(tx);
    const rounds = await Promise.all([1, 2, 3].map(() => pruneOld(db, bounds)));
    const deleted = rounds.map(({ mail_tokens }) => mail_tokens);
    expect(await count('mail_tokens')).toBe(40 - deleted.reduce((sum, rows) => sum + rows, 0));
    expect(await count('mail_tokens')).toBeGreaterThanOrEqual(1);
  });
  await pruneOld(db, bounds);
  expect(await count('mail_tokens')).toBe(0);
});

describe('the loop', () => {
  test('prunes repeatedly until it is closed', async () => {
    const retention = startRetention(db, { log: silentLog, everyMs: 20 });
    for (let round = 0; round < 3; round += 1) {
      await token('-1 day');
      await waitFor('the deletion of the token', async () => (await count('mail_tokens')) === 0);
    }
    await retention.close();
    await token('-1 day');
    // Long enough for a loop that was not closed.
    await sleep(200);
    expect(await count('mail_tokens')).toBe(1);
  });

  test('continues after a failed round', async () => {
    const warned: string[] = [];
    const log = { ...silentLog, info() {}, warn: (_: object, text: string) => warned.push(text) };
    await sql`ALTER TABLE mail_tokens RENAME TO hidden_tokens`.execute(db);
    const retention = startRetention(db, { log: log as unknown as typeof silentLog, everyMs: 20 });
    await waitFor('a failure', () => warned.some((text) => text.startsWith('retention')));
    await sql`ALTER TABLE hidden_tokens RENAME TO mail_tokens`.execute(db);
    await token('-1 day');
    await waitFor('the deletion of the token', async () => (await count('mail_tokens')) === 0);
    await retention.close();
  });
});
