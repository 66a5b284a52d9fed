import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openStatementPool, type StatementPool } from '../../lib/postgres/statement-pool.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import {
  issueStreamTicket,
  redeemStreamTicket,
  TICKETS_PER_ACCOUNT_MAX,
} from './stream-tickets.ts';

let namespace: DatabaseNamespace;
let db: Database;
let pool: StatementPool;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  pool = openStatementPool({
    url: namespace.engines.postgresUrl,
    namespace: namespace.name,
    name: 'test',
    log: silentLog,
    connectionsMax: 2,
    timeoutMs: 30_000,
  });
});

afterAll(async () => {
  await pool?.close();
  await db?.destroy();
});

const makeAccount = () => createTestAccount(db, namespace, { tier: 'pro' });

test('a ticket of a session has no key and is stored only as a hash', async () => {
  const { id } = await makeAccount();
  const { ticket, expiresAt } = await issueStreamTicket(db, { accountId: id, keyId: undefined });
  expect(ticket).toMatch(/^pit_[0-9A-Za-z_-]{43}$/);
  expect(Math.abs(expiresAt.getTime() - Date.now() - 30_000)).toBeLessThan(5_000);
  const stored = await db.selectFrom('stream_tickets').selectAll().execute();
  expect(stored).toHaveLength(1);
  expect(JSON.stringify(stored)).not.toContain(ticket);
  expect(await redeemStreamTicket(pool, ticket)).toEqual({ accountId: id, keyId: undefined });
});

test('an expired ticket is refused and deleted', async () => {
  const { id } = await makeAccount();
  const { ticket } = await issueStreamTicket(db, { accountId: id, keyId: undefined });
  await db.updateTable('stream_tickets').set({ expires_at: new Date() }).execute();
  expect(await redeemStreamTicket(pool, ticket)).toBeUndefined();
  expect(await db.selectFrom('stream_tickets').selectAll().execute()).toEqual([]);
});

test.each(['', 'pit_', 'x'.repeat(1_000_000), `pit_${'a'.repeat(43)}`, `pit_${"'".repeat(43)}`])(
  'a malformed or unknown ticket is refused (%#)',
  async (text) => {
    expect(await redeemStreamTicket(pool, text)).toBeUndefined();
  },
);

test('the number of open tickets per account is bounded: the oldest become void', async () => {
  const { id } = await makeAccount();
  const { ticket: oldest } = await issueStreamTicket(db, { accountId: id, keyId: undefined });
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
  const { ticket: newest } = await issueStreamTicket(db, { accountId: id, keyId: undefined });
  const rows = await db.selectFrom('stream_tickets').select('hash').execute();
  expect(rows).toHaveLength(TICKETS_PER_ACCOUNT_MAX);
  expect(await redeemStreamTicket(pool, oldest)).toBeUndefined();
  expect(await redeemStreamTicket(pool, newest)).toBeDefined();
});
