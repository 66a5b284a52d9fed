import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { openTestUsers, type TestUsers } from '../../testing/users-fixture.ts';
import { waitFor } from '../../testing/wait.ts';
import { entitlementOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { openKeyring } from '../access/keyring.ts';
import { readPepper } from '../access/pepper.ts';
import { issueStreamTicket } from '../access/stream-tickets.ts';
import {
  closeAccount,
  ERASED_AFTER_DAYS,
  eraseClosedAccounts,
  reopenAccount,
} from './account-closure.ts';
import { readAccountAccess, readSubscriptionRow } from './account-row.ts';
import { readAudit } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import { createKeys } from './keys.ts';
import { suspendAccount } from './operator.ts';
import { raiseReminders } from './reminders.ts';
import { renewDue } from './subscriptions.ts';

const BY = { actor: 'user:usr_test', address: '203.0.113.7' } as const;
const HOME = '192.0.2.1';

/** Calls of the billing provider. */
let calls: string[];
/** Number of dedicated streams so far, because their ports are unique. */
let streams = 0;
const billing = {
  name: 'test',
  async cancel({ reference }: { reference: string }, at: string) {
    calls.push(`cancel ${reference} ${at}`);
  },
  async voidCheckout(id: string) {
    calls.push(`void ${id}`);
  },
};

let namespace: DatabaseNamespace;
let db: Database;
let opened: TestUsers;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  calls = [];
  opened = await openTestUsers(db);
});

afterEach(async () => {
  await opened.close();
});

/** Creates an account with a row in every table that refers to accounts. */
async function fullAccount() {
  const account = await createTestAccount(db, namespace, { tier: 'pro' });
  const { id } = account;
  const email = `${newId('usr')}@example.com`;
  const user = { id: newId('usr'), account_id: id, email, password_hash: '-' };
  await db.insertInto('users').values(user).execute();
  const { token } = await opened.sessions.begin(user.id, HOME);
  await opened.users.requestReset(email, HOME);
  await opened.mails.idle();
  await sql`INSERT INTO sign_in_networks VALUES (${user.id}, ${HOME})`.execute(db);
  await sql`INSERT INTO second_factors VALUES (${user.id}, '-')`.execute(db);
  await sql`INSERT INTO recovery_codes VALUES (${Buffer.from(user.id)}, ${user.id})`.execute(db);
  const keys = createKeys({ db, pepper: readPepper(namespace.env.KEY_PEPPER_FILE!) });
  const rotated = await keys.rotate({ ...BY, accountId: id, keyId: account.keyId, overlapS: 60 });
  if (rotated?.kind !== 'ok') throw new Error('not rotated');
  const { ticket } = await issueStreamTicket(db, { accountId: id, keyId: account.keyId });
  await sql`INSERT INTO usage_days VALUES (${id}, current_date, 1)`.execute(db);
  await sql`INSERT INTO usage_calls VALUES (${id}, current_date, 'k', 'GET /', 1)`.execute(db);
  await sql`INSERT INTO usage_hours VALUES (${id}, date_trunc('hour', now()), 1)`.execute(db);
  await sql`INSERT INTO invitations (id, account_id, email, role, hash, created_by, expires_at)
    VALUES (${newId('inv')}, ${id}, 'x@y.z', 'admin', ${Buffer.from(id)}, 'test', now())`.execute(
    db,
  );
  await sql`INSERT INTO desks (id, account_id, name, created_by)
    VALUES (${newId('dsk')}, ${id}, 'tokyo', 'test')`.execute(db);
  await sql`INSERT INTO destinations
      (id, account_id, name, type, settings, filter, sealed, created_by)
    VALUES (${newId('dst')}, ${id}, 'lake', 's3', '{}', '{}', '-', 'test')`.execute(db);
  await sql`INSERT INTO exports
      (id, account_id, created_by, request, epoch, position, rows_estimated)
    VALUES (${newId('exp')}, ${id}, 'test', '{}', 'k', 'k:', 0)`.execute(db);
  await sql`INSERT INTO account_events (account_id, type, dedupe, data)
    VALUES (${id}, 'quota.warning', 'once', '{}')`.execute(db);
  await sql`INSERT INTO checkouts (id, account_id, tier, provider, expires_at)
    VALUES (${newId('chk')}, ${id}, 'pro', 'test', now())`.execute(db);
  await sql`INSERT INTO support_tickets (id, account_id, tier, subject, message)
    VALUES (${newId('tkt')}, ${id}, 'pro', 'Help', 'Why?')`.execute(db);
  streams += 1;
  await sql`INSERT INTO dedicated_streams (name, account_id, label, port, created_by)
    VALUES (${newId('ded')}, ${id}, 'desk', ${streams}, 'test')`.execute(db);
  await sql`INSERT INTO stream_processes VALUES ('one', now()) ON CONFLICT DO NOTHING`.execute(db);
  await sql`INSERT INTO stream_sessions VALUES
    (${newId('s')}, 'one', ${id}, NULL, 'pil_live_…', ${HOME}, 'json', now(), 0, 0)`.execute(db);
  const endpoint = newId('whe');
  await sql`INSERT INTO webhook_endpoints
      (id, account_id, url, event_types, rate_per_s, max_age_s, challenge)
    VALUES (${endpoint}, ${id}, 'https://example.com/', '{}', 1, 1, '-')`.execute(db);
  await sql`INSERT INTO webhook_secrets (endpoint_id, account_id, sealed)
    VALUES (${endpoint}, ${id}, '-')`.execute(db);
  await sql`INSERT INTO authentication_schemes
      (id, account_id, name, kind, algorithms, scopes, created_by, is_on)
    VALUES (${newId('aut')}, ${id}, 'x', 'signature', '{ed25519}', '{read}', 'test', true)`.execute(
    db,
  );
  return { ...account, newKey: rotated.key, token, ticket, userId: user.id };
}

type Full = Awaited<ReturnType<typeof fullAccount>>;

/** Counts the rows of an account in every table that refers to accounts. */
async function rowsOf({ id, userId }: Full): Promise<Readonly<Record<string, number>>> {
  const { rows: columns } = await sql<{ table: string; column: string }>`
    SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
    WHERE table_schema = current_schema() AND column_name IN ('account_id', 'user_id')
      AND table_name NOT IN ('access_changes', 'billing_events')
    ORDER BY table_name`.execute(db);
  const counts: Record<string, number> = {};
  for (const { table, column } of columns) {
    const owner = column === 'user_id' ? userId : id;
    const { rows } = await sql<{ rows: string }>`SELECT count(*) AS rows FROM ${sql.table(table)}
      WHERE ${sql.ref(column)} = ${owner}`.execute(db);
    counts[table] = Number(rows[0]!.rows);
  }
  return counts;
}

async function closedFor(account: Full, days: number, minutes = 0): Promise<void> {
  await sql`UPDATE accounts
    SET closed_at = now() - make_interval(days => ${days}, mins => ${minutes})
    WHERE id = ${account.id}`.execute(db);
}

const readAccount = ({ id }: Full) =>
  db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst();

test('closing ends keys, sessions and access of only this account at once', async () => {
  const [closed, other] = [await fullAccount(), await fullAccount()];
  const keyring = openKeyring({
    databaseUrl: namespace.engines.postgresUrl,
    namespace: namespace.name,
    pepper: readPepper(namespace.env.KEY_PEPPER_FILE!),
    log: silentLog,
    name: 'close',
  });
  const ask = async (key: string) => {
    const answer = await keyring.identify(key, HOME);
    return answer.kind === 'refused' ? answer.fault : answer.kind;
  };
  try {
    await waitFor('the keyring', () => keyring.isFresh());
    const keysOf = ({ key, newKey }: Full) => [key, newKey];
    for (const key of [...keysOf(closed), ...keysOf(other)]) expect(await ask(key)).toBe('key');
    await closeAccount({ db, billing }, { ...BY, accountId: closed.id });
    for (const key of keysOf(closed)) {
      await waitFor('the refusal', async () => (await ask(key)) === 'revoked');
    }
    for (const key of keysOf(other)) expect(await ask(key)).toBe('key');
  } finally {
    await keyring.close();
  }
  expect(await opened.sessions.find(closed.token)).toBeUndefined();
  expect(await opened.sessions.find(other.token)).toBeDefined();
  const access = await readAccountAccess(db, closed.id);
  expect(access?.status).toBe('closed');
  expect(entitlementOf(access!, 'latest', Date.now())).toEqual({ kind: 'account_suspended' });
  const audit = await readAudit(db, closed.id, { limit: 2 });
  expect(audit).toMatchObject([
    { action: 'account.closed', ...BY },
    { action: 'keys.revoked', ...BY, detail: { keys: 2 } },
  ]);
  // The data stays until the account is erased.
  expect(await rowsOf(closed)).toMatchObject({ api_keys: 2, usage_days: 1, users: 1 });
});

test('closing ends the subscription here and at the provider, and stops renewals and reminders', async () => {
  const account = await fullAccount();
  const { id } = account;
  await sql`UPDATE subscriptions SET status = 'past_due', past_due_since = now() - interval '2 days',
    period_end = now() - interval '2 days' WHERE account_id = ${id}`.execute(db);
  await sql`UPDATE api_keys SET created_at = now() - interval '30 days',
    expires_at = now() + interval '1 day' WHERE account_id = ${id}`.execute(db);
  const { provider_reference: reference } = (await readSubscriptionRow(db, id))!;
  const { id: checkout } = await db
    .selectFrom('checkouts')
    .select('id')
    .where('account_id', '=', id)
    .executeTakeFirstOrThrow();
  await closeAccount({ db, billing }, { ...BY, accountId: id });
  expect(calls).toEqual([`void ${checkout}`, `cancel ${reference} now`]);
  const ended = { status: 'ended', past_due_since: null };
  expect(await readSubscriptionRow(db, id)).toMatchObject(ended);
  await Promise.all([renewDue(db), raiseReminders(db)]);
  expect(await readSubscriptionRow(db, id)).toMatchObject(ended);
  const events = await db
    .selectFrom('account_events')
    .select(['type', 'parked_at', 'data'])
    .where('account_id', '=', id)
    .orderBy('id')
    .execute();
  // The waiting events are parked; the closing is mailed instead.
  expect(events).toMatchObject([
    { type: 'key.created', parked_at: expect.any(Date) },
    { type: 'quota.warning', parked_at: expect.any(Date) },
    { type: 'account.closed', parked_at: null, data: { tier: 'pro' } },
  ]);
  const paid = {
    provider: 'test',
    eventId: 'late',
    type: 'checkout.paid',
    at: new Date(),
  } as const;
  await applyBillingEvent(db, { ...paid, checkoutId: checkout });
  expect(await readSubscriptionRow(db, id)).toMatchObject(ended);
  await closeAccount({ db, billing }, { ...BY, accountId: id });
  expect(calls).toHaveLength(2);
});

test('an account stays open if the provider refuses to end the subscription', async () => {
  const account = await fullAccount();
  const cancel = () => Promise.reject(new Error('the provider is unavailable'));
  const closing = closeAccount(
    { db, billing: { ...billing, cancel } },
    { ...BY, accountId: account.id },
  );
  await expect(closing).rejects.toThrow('the provider is unavailable');
  expect(await readAccount(account)).toMatchObject({ status: 'active', closed_at: null });
  expect(await opened.sessions.find(account.token)).toBeDefined();
});

test('closing again does not change the time of erasure', async () => {
  const account = await fullAccount();
  await closeAccount({ db, billing }, { ...BY, accountId: account.id });
  await closedFor(account, 20);
  const first = await readAccount(account);
  await closeAccount({ db, billing }, { ...BY, accountId: account.id });
  expect(await readAccount(account)).toEqual(first);
});

test('an account is erased 30 days after its closing, with all rows except the audit log', async () => {
  const [closed, recent, suspended] = [
    await fullAccount(),
    await fullAccount(),
    await fullAccount(),
  ];
  for (const { id } of [closed, recent])
    await closeAccount({ db, billing }, { ...BY, accountId: id });
  await closedFor(closed, ERASED_AFTER_DAYS, 1);
  await closedFor(recent, ERASED_AFTER_DAYS, -1);
  await closedFor(suspended, 400);
  const before = await rowsOf(recent);
  const had = Object.entries(await rowsOf(suspended));
  expect(had.filter(([, rows]) => rows === 0)).toEqual([]);
  const audit = await readAudit(db, closed.id, { limit: 50 });
  expect(await Promise.all([eraseClosedAccounts(db), eraseClosedAccounts(db)])).toContain(1);
  expect(await readAccount(closed)).toBeUndefined();
  const left = Object.entries(await rowsOf(closed)).filter(([, rows]) => rows > 0);
  expect(left).toEqual([['audit_log', audit.length]]);
  expect(await readAudit(db, closed.id, { limit: 50 })).toEqual(audit);
  expect(await rowsOf(recent)).toEqual(before);
  expect(await readAccount(suspended)).toMatchObject({ status: 'active' });
  expect(await eraseClosedAccounts(db)).toBe(0);
});

test('a closed account can be reopened for 30 days: sign-in works, keys and subscription stay ended', async () => {
  const account = await fullAccount();
  const request = { ...BY, accountId: account.id };
  expect(await reopenAccount(db, request)).toBeUndefined();
  await closeAccount({ db, billing }, request);
  await closedFor(account, ERASED_AFTER_DAYS, 1);
  expect(await reopenAccount(db, request)).toBeUndefined();
  await closedFor(account, ERASED_AFTER_DAYS, -1);
  const before = await rowsOf(account);
  const opened = await Promise.all([reopenAccount(db, request), reopenAccount(db, request)]);
  expect(opened.toSorted()).toEqual(['active', undefined]);
  expect(await readAccount(account)).toMatchObject({ status: 'active', closed_at: null });
  expect(await eraseClosedAccounts(db)).toBe(0);
  expect(await rowsOf(account)).toEqual({
    ...before,
    account_events: before.account_events! + 1,
    audit_log: before.audit_log! + 1,
  });
  const keys = await db
    .selectFrom('api_keys')
    .select('revoked_at')
    .where('account_id', '=', account.id)
    .execute();
  expect(keys.every(({ revoked_at }) => revoked_at !== null)).toBe(true);
  const access = await readAccountAccess(db, account.id);
  expect(entitlementOf(access!, 'latest', Date.now()).kind).toBe('subscription_required');
  expect(await readAudit(db, account.id, { limit: 1 })).toMatchObject([
    { action: 'account.reopened', ...BY, detail: { status: 'active' } },
  ]);
  // It can be closed and reopened again.
  await closeAccount({ db, billing }, request);
  expect(await reopenAccount(db, request)).toBe('active');
});

test('closing and reopening does not end a suspension', async () => {
  const account = await fullAccount();
  const request = { ...BY, accountId: account.id };
  await suspendAccount(db, { ...request, reason: 'abuse' });
  await closeAccount({ db, billing }, request);
  expect(await reopenAccount(db, request)).toBe('suspended');
  expect((await readAccountAccess(db, account.id))?.suspendedReason).toBe('abuse');
});

test('keys of a closed account cannot be used while it waits for its erasure', async () => {
  const account = await fullAccount();
  await closeAccount({ db, billing }, { ...BY, accountId: account.id });
  const keys = createKeys({ db, pepper: readPepper(namespace.env.KEY_PEPPER_FILE!) });
  expect((await keys.list(account.id)).some((key) => key.live)).toBe(false);
  expect(await keys.recognise(account.id, account.newKey)).toBeUndefined();
});
