import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { entitlementOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { openKeyring } from '../access/keyring.ts';
import { readPepper } from '../access/pepper.ts';
import { issueTicket } from '../access/tickets.ts';
import { silentLog } from '../log.ts';
import type { Database } from '../postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { openTestUsers, type TestUsers } from '../testing/users.ts';
import { waitFor } from '../testing/wait.ts';
import { readAccountAccess, readSubscriptionRow } from './account-row.ts';
import { readAudit } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import { closeAccount, ERASED_AFTER_DAYS, eraseClosedAccounts } from './close-account.ts';
import { createKeys } from './keys.ts';
import { raiseReminders } from './reminders.ts';
import { renewDue } from './subscriptions.ts';

const BY = { actor: 'user:usr_test', address: '203.0.113.7' } as const;
const HOME = '192.0.2.1';

/** What the billing provider was told. */
let told: string[];
/** Ports of dedicated streams are taken once. */
let streams = 0;
const billing = {
  name: 'test',
  async cancel({ reference }: { reference: string }, at: string) {
    told.push(`cancel ${reference} ${at}`);
  },
  async voidCheckout(id: string) {
    told.push(`void ${id}`);
  },
};

let namespace: Namespace;
let db: Database;
let opened: TestUsers;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  told = [];
  opened = await openTestUsers(db);
});

afterEach(async () => {
  await opened.close();
});

/** An account with a row in every table that accounts have rows in. */
async function fullAccount() {
  const account = await createTestAccount(db, namespace, { tier: 'pro' });
  const { id } = account;
  const email = `${newId('usr')}@example.com`;
  const user = { id: newId('usr'), account_id: id, email, password_hash: '-' };
  await db.insertInto('users').values(user).execute();
  const { token } = await opened.sessions.begin(user.id, HOME);
  await opened.users.requestReset(email, HOME);
  await opened.mails.idle();
  const keys = createKeys({ db, pepper: readPepper(namespace.env.KEY_PEPPER_FILE!) });
  const rotated = await keys.rotate({ ...BY, accountId: id, keyId: account.keyId, overlapS: 60 });
  if (rotated?.kind !== 'ok') throw new Error('not rotated');
  const { ticket } = await issueTicket(db, { accountId: id, keyId: account.keyId });
  await sql`INSERT INTO usage_days VALUES (${id}, current_date, 1)`.execute(db);
  await sql`INSERT INTO usage_calls VALUES (${id}, current_date, 'k', 'GET /', 1)`.execute(db);
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
  return { ...account, newKey: rotated.key, token, ticket, userId: user.id };
}

type Full = Awaited<ReturnType<typeof fullAccount>>;

/** Tables that name an account, with its rows in each. */
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

test('closing ends keys, sessions and access at once, of this account alone', async () => {
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
  // Its data is there until it is erased.
  expect(await rowsOf(closed)).toMatchObject({ api_keys: 2, usage_days: 1, users: 1 });
});

test('closing ends the subscription here and at its provider: nothing is renewed or reminded', async () => {
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
  expect(told).toEqual([`void ${checkout}`, `cancel ${reference} now`]);
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
  // What waited is not told any more; the end is.
  expect(events).toMatchObject([
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
  expect(told).toHaveLength(2);
});

test('an account whose provider refuses the end stays open', async () => {
  const account = await fullAccount();
  const cancel = () => Promise.reject(new Error('the provider is away'));
  const closing = closeAccount(
    { db, billing: { ...billing, cancel } },
    { ...BY, accountId: account.id },
  );
  await expect(closing).rejects.toThrow('the provider is away');
  expect(await readAccount(account)).toMatchObject({ status: 'active', closed_at: null });
  expect(await opened.sessions.find(account.token)).toBeDefined();
});

test('closing again leaves the day of erasure', async () => {
  const account = await fullAccount();
  await closeAccount({ db, billing }, { ...BY, accountId: account.id });
  await closedFor(account, 20);
  const first = await readAccount(account);
  await closeAccount({ db, billing }, { ...BY, accountId: account.id });
  expect(await readAccount(account)).toEqual(first);
});

test('an account is erased 30 days after it was closed, with all it had but the audit log', async () => {
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

test('what has ended with the account cannot be used while it waits to be erased', async () => {
  const account = await fullAccount();
  await closeAccount({ db, billing }, { ...BY, accountId: account.id });
  const keys = createKeys({ db, pepper: readPepper(namespace.env.KEY_PEPPER_FILE!) });
  expect((await keys.list(account.id)).some((key) => key.live)).toBe(false);
  expect(await keys.recognise(account.id, account.newKey)).toBeUndefined();
});
