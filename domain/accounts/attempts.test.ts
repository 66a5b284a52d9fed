import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { ATTEMPT_LIMITS, createAttempts, pruneAttempts } from './attempts.ts';

let namespace: DatabaseNamespace;
let db: Database;
/** The database as another process sees it. */
let elsewhere: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  elsewhere = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
  await elsewhere?.destroy();
});

beforeEach(async () => {
  await db.deleteFrom('attempts').execute();
});

const { max } = ATTEMPT_LIMITS.passwordOfUser;

test('of many concurrent attempts in two processes, exactly the limit is allowed', async () => {
  const processes = [createAttempts(db), createAttempts(elsewhere)];
  const taken = await Promise.all(
    Array.from({ length: 5 * max }, (_, index) =>
      processes[index % 2]!.take(['passwordOfUser', 'trader']),
    ),
  );
  expect(taken.filter((limited) => limited === undefined)).toHaveLength(max);
  // A restarted process, and an attempt at another user.
  const restarted = createAttempts(db);
  const limited = await restarted.take(['passwordOfUser', 'trader']);
  expect(limited).toMatchObject({ kind: 'limited' });
  expect(limited!.retryAfterS).toBeGreaterThan(14 * 60);
  expect(limited!.retryAfterS).toBeLessThanOrEqual(15 * 60);
  expect(await restarted.take(['passwordOfUser', 'other'])).toBeUndefined();
});

test('an attempt that is refused under one limit does not count under the next', async () => {
  const attempts = createAttempts(db);
  for (let attempt = 0; attempt < 2 * max; attempt += 1) {
    await attempts.take(['passwordOfUser', 'trader'], ['passwordOfUserEverywhere', 'trader']);
  }
  const rows = await db.selectFrom('attempts').select('count').orderBy('count').execute();
  expect(rows.map(({ count }) => count)).toEqual([max, 2 * max]);
});

test('attempts are taken back one by one, or all; a new window begins when the old has ended', async () => {
  const attempts = createAttempts(db);
  const take = () => attempts.take(['passwordOfUser', 'trader']);
  for (let attempt = 0; attempt < max; attempt += 1) expect(await take()).toBeUndefined();
  await attempts.giveBack(['passwordOfUser', 'trader']);
  expect(await take()).toBeUndefined();
  expect(await take()).toBeDefined();
  await attempts.forget(['passwordOfUser', 'trader']);
  for (let attempt = 0; attempt < max; attempt += 1) expect(await take()).toBeUndefined();
  expect(await take()).toBeDefined();
  await sql`UPDATE attempts SET ends_at = now()`.execute(db);
  expect(await take()).toBeUndefined();
});

test('ended windows are deleted, and beyond the bound those that end first', async () => {
  const attempts = createAttempts(db);
  const subjects = Array.from({ length: 20 }, (_, index) => `user ${index}`);
  for (const subject of subjects) await attempts.take(['codeOfUser', subject]);
  await attempts.take(['codeOfUserInADay', 'user 0']);
  await sql`UPDATE attempts SET ends_at = now() - interval '1 second'
    WHERE ctid IN (SELECT ctid FROM attempts ORDER BY ends_at LIMIT 5)`.execute(db);
  const count = async () => (await db.selectFrom('attempts').selectAll().execute()).length;
  await pruneAttempts(db);
  expect(await count()).toBe(16);
  await pruneAttempts(db, 10);
  expect(await count()).toBe(10);
  // The window of a day, which ends last, is kept.
  const [last] = await db.selectFrom('attempts').selectAll().orderBy('ends_at', 'desc').execute();
  expect(last!.ends_at.getTime()).toBeGreaterThan(Date.now() + 23 * 3_600_000);
});

test('the table does not contain the addresses that were tried', async () => {
  await createAttempts(db).take(['mailToUser', 'trader@example.com']);
  const { rows } = await sql<{ text: string }>`SELECT a::text AS text FROM attempts a`.execute(db);
  expect(rows).toHaveLength(1);
  expect(rows[0]!.text).not.toContain('trader');
  expect(rows[0]!.text).not.toContain(Buffer.from('trader').toString('hex'));
});
