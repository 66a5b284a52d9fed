import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { newId } from '../access/id.ts';
import { readSubscriptionRow } from './account-row.ts';
import { applyBillingEvent } from './billing.ts';
import type { BillingEvent } from './billing-provider.ts';
import { insertCheckout } from './checkouts.ts';

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

/** Possible events of a subscription, at distinct minutes after its purchase. */
const later = fc.uniqueArray(
  fc.record({
    // Several payments of different tiers, and occasionally an end.
    type: fc.constantFrom(
      ...(['payment.succeeded', 'payment.succeeded', 'payment.succeeded'] as const),
      ...(['payment.failed', 'payment.failed'] as const),
      ...(['subscription.ended', 'checkout.failed'] as const),
    ),
    minute: fc.integer({ min: 1, max: 20 }),
    tier: fc.constantFrom('basic', 'institutional', undefined),
  }),
  { minLength: 2, maxLength: 4, selector: ({ minute }) => minute },
);

/** Begins a checkout, applies the events in this order, and returns the resulting subscription. */
async function lived(events: readonly Omit<BillingEvent, 'eventId' | 'provider'>[]) {
  const { id: accountId } = await createTestAccount(db, namespace, { tier: null });
  const begun = await insertCheckout(
    db,
    { name: 'stripe', canBuy: true },
    { actor: 'system', isVerified: true, accountId, tier: 'pro' },
  );
  if (begun.kind !== 'ok') throw new Error(begun.kind);
  const reference = newId('sub');
  for (const event of events) {
    const isCheckout = event.type.startsWith('checkout');
    const whose = isCheckout ? { checkoutId: begun.checkoutId } : { accountId };
    const eventId = newId('evt');
    const sent = { ...event, ...whose, provider: 'stripe', eventId, reference };
    expect((await applyBillingEvent(db, sent)).kind).not.toBe('unknown');
    expect(await applyBillingEvent(db, sent)).toEqual({ kind: 'repeat' });
  }
  const row = (await readSubscriptionRow(db, accountId))!;
  const checkout = await db
    .selectFrom('checkouts')
    .select('status')
    .where('id', '=', begun.checkoutId)
    .executeTakeFirstOrThrow();
  const { tier, status, past_due_since, period_end } = row;
  // The paid period of an ended subscription does not matter.
  const rest = status === 'ended' ? {} : { tier, past_due_since, period_end };
  return { status, checkout: checkout.status, ...rest };
}

test('the events of a subscription lead to the same result in any order', async () => {
  const startMs = Date.now() - 3_600_000;
  await fc.assert(
    fc.asyncProperty(later, fc.infiniteStream(fc.nat()), async (drawn, draws) => {
      const inOrder = [
        { type: 'checkout.paid' as const, at: new Date(startMs) },
        ...[...drawn]
          .sort((a, b) => a.minute - b.minute)
          .map(({ type, minute, tier }) => ({
            type,
            at: new Date(startMs + minute * 60_000),
            tier: type === 'payment.succeeded' ? tier : undefined,
          })),
      ];
      const shuffled = inOrder
        .map((event) => ({ event, draw: draws.next().value }))
        .sort((a, b) => a.draw - b.draw)
        .map(({ event }) => event);
      const expected = await lived(inOrder);
      expect(await lived(shuffled)).toEqual(expected);
      expect(await lived([...inOrder].reverse())).toEqual(expected);
      const [bought, ...rest] = inOrder;
      expect(await lived([bought!, ...rest.reverse()])).toEqual(expected);
    }),
    { numRuns: 25 },
  );
});
