import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import type { Database } from '../postgres/database.ts';
import { openQuickPool, type QuickPool } from '../postgres/quick-pool.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { issueTicket, redeemTicket, TICKETS_PER_ACCOUNT_MAX } from './tickets.ts';

let namespace: Namespace;
let db: Database;
let pool: QuickPool;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  pool = openQuickPool({
    url: namespace.engines.postgresUrl,
    namespace: namespace.name,
    name: 'test',
    log: silentLog,
    connectionsMax: 2,
    timeoutMs: 2_000,
  });
});

afterAll(async () => {
  await pool?.close();
  await db?.destroy();
});

const makeAccount = () => createTestAccount(db, namespace, { tier: 'pro' });

test('a ticket of a session has no key, and is stored only as a hash', async () => {
  const { id } = await makeAccount();
  const { ticket, expiresAt } = await issueTicket(db, { accountId: id, keyId: undefined });
  expect(ticket).toMatch(/^pit_[0-9A-Za-z_-]{43}$/);
  expect(Math.abs(expiresAt.getTime() - Date.now() - 30_000)).toBeLessThan(5_000);
  const stored = await db.selectFrom('stream_tickets').selectAll().execute();
  expect(stored).toHaveLength(1);
  expect(JSON.stringify(stored)).not.toContain(ticket);
  expect(await redeemTicket(pool, ticket)).toEqual({ accountId: id, keyId: undefined });
});

test('a ticket is refused when it has expired', async () => {
  const { id } = await makeAccount();
  const { ticket } = await issueTicket(db, { accountId: id, keyId: undefined });
  await db.updateTable('stream_tickets').set({ expires_at: new Date() }).execute();
  expect(await redeemTicket(pool, ticket)).toBeUndefined();
  expect(await db.selectFrom('stream_tickets').selectAll().execute()).toEqual([]);
});

test.each(['', 'pit_', 'x'.repeat(1_000_000), `pit_${'a'.repeat(43)}`, `pit_${"'".repeat(43)}`])(
  'what is no ticket is refused (%#)',
  async (text) => {
    expect(await redeemTicket(pool, text)).toBeUndefined();
  },
);

test('an account has a bounded number of open tickets: the oldest go', async () => {
  const { id } = await makeAccount();
  const { ticket: oldest } = await issueTicket(db, { accountId: id, keyId: undefined });
  await db
    .insertInto('stream_tickets')
    .values(
      Array.from({ length: TICKETS_PER_ACCOUNT_MAX - 1 }, (_, i) => ({
        hash: Buffer.from(`filler ${i}`),
        account_id: id,
        key_id: null,
        expires_at: new Date(Date.now() + 40_000),
      })),
    )
    .execute();
  const { ticket: newest } = await issueTicket(db, { accountId: id, keyId: undefined });
  const rows = await db.selectFrom('stream_tickets').select('hash').execute();
  expect(rows).toHaveLength(TICKETS_PER_ACCOUNT_MAX);
  expect(await redeemTicket(pool, oldest)).toBeUndefined();
  expect(await redeemTicket(pool, newest)).toBeDefined();
});
