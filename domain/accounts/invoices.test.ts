import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import type { Tier } from '../access/tiers.ts';
import { insertCheckout } from './checkouts.ts';
import { listInvoices } from './invoices.ts';
import { renewDue } from './subscriptions.ts';
import { payCheckout, TEST_PROVIDER } from './test-billing.ts';

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

async function buy(accountId: string, tier: Tier, outcome: 'paid' | 'failed' = 'paid') {
  const begun = await insertCheckout(
    db,
    { name: TEST_PROVIDER, canBuy: true },
    { actor: 'system', isVerified: true, accountId, tier },
  );
  if (begun.kind !== 'ok') throw new Error(begun.kind);
  await payCheckout(db, begun.checkoutId, accountId, outcome);
  return begun;
}

test('each payment has an invoice: purchase, upgrade with its credit, renewal; a failed one has none', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: null });
  const other = await createTestAccount(db, namespace, { tier: null });
  await buy(other.id, 'basic');
  expect(await listInvoices(db, id)).toEqual([]);
  await buy(id, 'pro', 'failed');
  await buy(id, 'pro');
  const upgrade = await buy(id, 'institutional');
  await db
    .updateTable('subscriptions')
    .set({ period_end: new Date(Date.now() - 1_000) })
    .where('account_id', '=', id)
    .execute();
  expect(await renewDue(db)).toBe(1);
  const invoices = await listInvoices(db, id);
  expect(invoices.map(({ number, kind, tier }) => [number, kind, tier])).toEqual([
    [3, 'renewal', 'institutional'],
    [2, 'purchase', 'institutional'],
    [1, 'purchase', 'pro'],
  ]);
  const [renewed, upgraded, bought] = invoices;
  expect([bought!.amountCents, bought!.creditCents]).toEqual([9_900, 0]);
  const { amountCents, creditCents } = upgrade;
  expect([upgraded!.amountCents, upgraded!.creditCents]).toEqual([amountCents, creditCents]);
  expect(creditCents).toBeGreaterThan(0);
  expect([renewed!.amountCents, renewed!.creditCents]).toEqual([amountCents + creditCents, 0]);
  expect(renewed!.periodEnd.getTime()).toBeGreaterThan(Date.now());
});
