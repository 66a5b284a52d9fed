import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { PAST_DUE_GRACE_MS } from '../access/account-access.ts';
import { entitlementOf, tierOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { readPepper } from '../access/pepper.ts';
import type { Tier } from '../access/tiers.ts';
import { readAccountAccess } from './account-row.ts';
import { readAudit } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import { PERIOD_MS } from './billing-events.ts';
import type { BillingEvent } from './billing-provider.ts';
import { CHECKOUT_LIMITS } from './checkouts.ts';
import { sendTestBillingEvent } from './operator.ts';
import { createSubscriptions, renewDue, type Subscriptions } from './subscriptions.ts';
import {
  createTestBilling,
  payCheckout,
  readTestCheckout,
  type TestBilling,
} from './test-billing.ts';

const BY = { actor: 'user:usr_test', address: '203.0.113.7', isVerified: true } as const;
const RETURN = { returnUrl: 'http://127.0.0.1/back' } as const;

let namespace: DatabaseNamespace;
let db: Database;
let billing: TestBilling;
let subscriptions: Subscriptions;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  const pepper = readPepper(namespace.env.KEY_PEPPER_FILE!);
  billing = createTestBilling({ pepper, pageUrl: 'http://127.0.0.1:1/billing/test' });
  subscriptions = createSubscriptions({ db, billing, canBuy: true });
});

afterAll(async () => {
  await db?.destroy();
});

async function newAccount(tier: Tier | null = 'pro') {
  const { id } = await createTestAccount(db, namespace, { tier });
  // All provider events of a test happen after this.
  await db
    .updateTable('subscriptions')
    .set({ updated_at: ago(60) })
    .where('account_id', '=', id)
    .execute();
  return id;
}

function ago(minutes: number): Date {
  return new Date(Date.now() - minutes * 60_000);
}

function event(type: BillingEvent['type'], accountId: string, at = new Date()): BillingEvent {
  return { provider: 'test', eventId: newId('evt'), type, accountId, at };
}

async function eventsOf(accountId: string) {
  return db
    .selectFrom('account_events')
    .select(['type', 'data'])
    .where('account_id', '=', accountId)
    .orderBy('id')
    .execute();
}

async function begin(accountId: string, tier: Tier) {
  const begun = await subscriptions.beginCheckout({ ...BY, ...RETURN, accountId, tier });
  if (begun.kind !== 'ok') throw new Error(`no checkout: ${begun.kind}`);
  return begun;
}

test('an event that arrives ten times concurrently has effect once', async () => {
  const id = await newAccount();
  const failed = event('payment.failed', id);
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, () => applyBillingEvent(db, failed)),
  );
  expect(outcomes.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
  expect(outcomes.filter(({ kind }) => kind === 'repeat')).toHaveLength(9);
  const events = await eventsOf(id);
  expect(events).toHaveLength(1);
  expect(events[0]).toMatchObject({ type: 'payment.failed', data: { tier: 'pro', days_left: 7 } });
  const audit = await readAudit(db, id, { limit: 10 });
  expect(audit).toHaveLength(1);
  expect(audit[0]).toMatchObject({ action: 'payment.failed', actor: 'billing:test' });
});

test('a late failure does not undo a newer payment', async () => {
  const id = await newAccount();
  const paid = event('payment.succeeded', id, ago(10));
  expect((await applyBillingEvent(db, paid)).kind).toBe('applied');
  const late = event('payment.failed', id, ago(20));
  expect(await applyBillingEvent(db, late)).toEqual({ kind: 'stale' });
  expect(await applyBillingEvent(db, late)).toEqual({ kind: 'repeat' });
  expect(await subscriptions.read(id)).toMatchObject({ status: 'active' });
  // By time the failure is the latest event, whatever the order of arrival.
  expect((await applyBillingEvent(db, event('payment.failed', id, ago(5)))).kind).toBe('applied');
  expect((await applyBillingEvent(db, event('payment.succeeded', id, ago(7)))).kind).toBe(
    'applied',
  );
  expect(await subscriptions.read(id)).toMatchObject({ status: 'past_due' });
});

test('an event that arrives before its subscription is not stored, and can be sent again', async () => {
  const id = await newAccount(null);
  const early = event('payment.failed', id);
  expect(await applyBillingEvent(db, early)).toEqual({ kind: 'unknown' });
  const { checkoutId } = await begin(id, 'basic');
  expect(await payCheckout(db, checkoutId, id, 'paid')).toEqual({ kind: 'ok' });
  const again = { ...early, at: new Date() };
  expect((await applyBillingEvent(db, again)).kind).toBe('applied');
  expect(await applyBillingEvent(db, event('payment.failed', 'acc_none'))).toEqual({
    kind: 'unknown',
  });
});

test("a provider's clock that is ahead does not make later events stale", async () => {
  const id = await newAccount();
  const ahead = event('payment.failed', id, new Date(Date.now() + 86_400_000));
  expect((await applyBillingEvent(db, ahead)).kind).toBe('applied');
  expect((await applyBillingEvent(db, event('payment.succeeded', id))).kind).toBe('applied');
  expect(await subscriptions.read(id)).toMatchObject({ status: 'active' });
});

test('an event of another or an ended subscription has no effect', async () => {
  const id = await newAccount();
  const other = { ...event('subscription.ended', id), reference: 'sub_of_before' };
  expect(await applyBillingEvent(db, other)).toEqual({ kind: 'stale' });
  const stripe = { ...event('subscription.ended', id), provider: 'stripe' };
  expect(await applyBillingEvent(db, stripe)).toEqual({ kind: 'stale' });
  expect((await applyBillingEvent(db, event('subscription.ended', id))).kind).toBe('applied');
  expect(await applyBillingEvent(db, event('payment.succeeded', id))).toEqual({ kind: 'stale' });
  expect(await subscriptions.read(id)).toMatchObject({ status: 'ended', inForce: false });
});

test('a past due account has full access for 7 days from the first failure, then none', async () => {
  const id = await newAccount();
  const first = ago(30);
  await applyBillingEvent(db, event('payment.failed', id, first));
  await applyBillingEvent(db, event('payment.failed', id, ago(10)));
  const account = (await readAccountAccess(db, id))!;
  expect(account.subscription?.pastDueSinceMs).toBe(first.getTime());
  const endMs = first.getTime() + PAST_DUE_GRACE_MS;
  expect(tierOf(account, endMs - 1)).toBe('pro');
  expect(entitlementOf(account, 'stream', endMs).kind).toBe('account_suspended');
  expect(await subscriptions.read(id)).toMatchObject({
    inForce: true,
    accessEndsAt: new Date(endMs),
  });
  await applyBillingEvent(db, event('payment.succeeded', id));
  expect(tierOf((await readAccountAccess(db, id))!, endMs)).toBe('pro');
  expect((await eventsOf(id)).map(({ type }) => type)).toEqual([
    'payment.failed',
    'payment.failed',
    'subscription.changed',
  ]);
});

test('a checkout is paid once, only by its own account, and grants the tier', async () => {
  const id = await newAccount(null);
  const stranger = await newAccount(null);
  const { checkoutId, url } = await begin(id, 'institutional');
  expect(url).toBe(`http://127.0.0.1:1/billing/test?checkout=${checkoutId}`);
  expect(await payCheckout(db, checkoutId, stranger, 'paid')).toBeUndefined();
  const clicks = await Promise.all(
    Array.from({ length: 5 }, () => payCheckout(db, checkoutId, id, 'paid', BY)),
  );
  expect(clicks).toEqual(Array.from({ length: 5 }, () => ({ kind: 'ok' })));
  expect(await payCheckout(db, checkoutId, id, 'failed')).toEqual({
    kind: 'not_open',
    status: 'paid',
  });
  expect(await subscriptions.read(id)).toMatchObject({ tier: 'institutional', inForce: true });
  expect(await eventsOf(id)).toMatchObject([
    { type: 'subscription.changed', data: { tier: 'institutional', previous_tier: null } },
  ]);
  const again = { ...BY, ...RETURN, accountId: id, tier: 'pro' } as const;
  expect(await subscriptions.beginCheckout(again)).toEqual({
    kind: 'already_subscribed',
    tier: 'institutional',
  });
});

test('a failed or expired checkout grants no tier, and checkouts per hour are bounded', async () => {
  const id = await newAccount(null);
  const failed = await begin(id, 'basic');
  expect(await payCheckout(db, failed.checkoutId, id, 'failed')).toEqual({ kind: 'ok' });
  expect(await payCheckout(db, failed.checkoutId, id, 'paid')).toEqual({
    kind: 'not_open',
    status: 'failed',
  });
  const expired = await begin(id, 'basic');
  await db
    .updateTable('checkouts')
    .set({ expires_at: ago(1) })
    .where('id', '=', expired.checkoutId)
    .execute();
  expect(await payCheckout(db, expired.checkoutId, id, 'paid')).toEqual({
    kind: 'not_open',
    status: 'expired',
  });
  expect(await readTestCheckout(db, expired.checkoutId, id)).toMatchObject({ status: 'expired' });
  expect(await subscriptions.read(id)).toBeUndefined();
  // Two checkouts were begun; the expired one no longer counts.
  const more = await Promise.all(
    Array.from({ length: CHECKOUT_LIMITS.begunMax + 3 }, () =>
      subscriptions.beginCheckout({ ...BY, ...RETURN, accountId: id, tier: 'pro' }),
    ),
  );
  expect(more.filter(({ kind }) => kind === 'ok')).toHaveLength(CHECKOUT_LIMITS.begunMax - 1);
  expect(more.filter(({ kind }) => kind === 'limit')).toHaveLength(4);
});

test('only the newest checkout can be paid: an earlier one is void and says so', async () => {
  const id = await newAccount(null);
  const first = await begin(id, 'institutional');
  const second = await begin(id, 'basic');
  const isVoid = { kind: 'not_open', status: 'void' };
  expect(await payCheckout(db, first.checkoutId, id, 'paid')).toEqual(isVoid);
  // The provider may still have taken the money: the audit log shows it, but no tier is granted.
  const { checkoutId } = first;
  const unused = { ...event('checkout.paid', id), accountId: undefined, checkoutId };
  expect(await applyBillingEvent(db, unused)).toEqual({ kind: 'stale' });
  expect(await applyBillingEvent(db, unused)).toEqual({ kind: 'repeat' });
  expect(await readAudit(db, id, { limit: 1 })).toMatchObject([
    { action: 'checkout.paid', target: checkoutId, detail: { without_effect: expect.any(String) } },
  ]);
  expect(await subscriptions.read(id)).toBeUndefined();
  expect(await payCheckout(db, checkoutId, id, 'paid')).toEqual(isVoid);
  expect(await payCheckout(db, second.checkoutId, id, 'paid')).toEqual({ kind: 'ok' });
  expect(await subscriptions.read(id)).toMatchObject({ tier: 'basic', inForce: true });
});

test('a payment counts even if it is older than the last event of the previous subscription', async () => {
  const id = await newAccount();
  await applyBillingEvent(db, event('subscription.ended', id));
  const { checkoutId } = await begin(id, 'basic');
  const paid = { ...event('checkout.paid', id, ago(1)), accountId: undefined, checkoutId };
  expect((await applyBillingEvent(db, paid)).kind).toBe('applied');
  expect(await payCheckout(db, checkoutId, id, 'paid')).toEqual({ kind: 'ok' });
  expect(await subscriptions.read(id)).toMatchObject({ tier: 'basic', inForce: true });
});

test('a lower tier is chosen for the next period, and a cancellation can be withdrawn until then', async () => {
  const id = await newAccount('pro');
  const ask = { ...BY, accountId: id };
  expect(await subscriptions.changeTier({ ...ask, tier: 'basic' })).toMatchObject({
    kind: 'ok',
    subscription: { tier: 'pro', nextTier: 'basic', status: 'active' },
  });
  const cancelled = await subscriptions.cancel({ ...ask, at: 'period_end' });
  expect(cancelled).toMatchObject({ subscription: { cancelAtPeriodEnd: true, inForce: true } });
  expect(await subscriptions.resume(ask)).toMatchObject({
    subscription: { cancelAtPeriodEnd: false, accessEndsAt: undefined },
  });
  expect(await subscriptions.resume(ask)).toMatchObject({ kind: 'ok' });
  expect(await subscriptions.cancel({ ...ask, at: 'now' })).toMatchObject({
    subscription: { status: 'ended', inForce: false },
  });
  expect(await subscriptions.resume(ask)).toEqual({ kind: 'subscription_required' });
  const actions = (await readAudit(db, id, { limit: 10 })).map(({ action }) => action).reverse();
  expect(actions).toEqual([
    'subscription.tier_changed',
    'subscription.cancelled',
    'subscription.resumed',
    'subscription.cancelled',
  ]);
  expect(await eventsOf(id)).toHaveLength(4);
});

test('a change by the owner does not hide an earlier failure', async () => {
  const id = await newAccount('pro');
  await subscriptions.changeTier({ ...BY, accountId: id, tier: 'basic' });
  expect((await applyBillingEvent(db, event('payment.failed', id, ago(5)))).kind).toBe('applied');
});

test('due subscriptions are renewed or ended once, however many processes run', async () => {
  const [renewed, cancelled, failing] = [
    await newAccount(),
    await newAccount(),
    await newAccount(),
  ];
  const ended = ago(60 * 24 * 40);
  const setDue = (id: string, more: object) =>
    db
      .updateTable('subscriptions')
      .set({ period_end: ended, ...more })
      .where('account_id', '=', id)
      .execute();
  await setDue(renewed, {});
  await setDue(cancelled, { cancel_at_period_end: true });
  await setDue(failing, { status: 'past_due', past_due_since: ago(5) });
  const counts = await Promise.all(Array.from({ length: 4 }, () => renewDue(db)));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2);
  expect(await renewDue(db)).toBe(0);
  expect(await subscriptions.read(renewed)).toMatchObject({
    status: 'active',
    periodEnd: new Date(ended.getTime() + 2 * PERIOD_MS),
  });
  expect(await subscriptions.read(cancelled)).toMatchObject({ status: 'ended' });
  expect(await subscriptions.read(failing)).toMatchObject({ status: 'past_due', periodEnd: ended });
  expect(await eventsOf(renewed)).toEqual([]);
});

test('a renewal is dropped if the owner changes the subscription meanwhile', async () => {
  const id = await newAccount();
  await db
    .updateTable('subscriptions')
    .set({ period_end: ago(1) })
    .where('account_id', '=', id)
    .execute();
  const row = await db
    .selectFrom('subscriptions')
    .selectAll()
    .where('account_id', '=', id)
    .executeTakeFirstOrThrow();
  const renewal = event('payment.succeeded', id);
  const notAsRead = () => false;
  expect(await applyBillingEvent(db, renewal, BY, notAsRead)).toEqual({ kind: 'stale' });
  expect(await subscriptions.read(id)).toMatchObject({ periodEnd: row.period_end });
  // The event was not stored, so the next run can still apply it.
  expect((await applyBillingEvent(db, renewal)).kind).toBe('applied');
});

test('the operator can make the test provider fail, pay and end', async () => {
  const id = await newAccount();
  const ask = { actor: 'operator:root', accountId: id } as const;
  for (const [type, status] of [
    ['payment.failed', 'past_due'],
    ['payment.succeeded', 'active'],
    ['subscription.ended', 'ended'],
  ] as const) {
    expect((await sendTestBillingEvent(db, { ...ask, type })).kind).toBe('applied');
    expect(await subscriptions.read(id)).toMatchObject({ status });
  }
  const none = { ...ask, accountId: await newAccount(null) };
  expect(await sendTestBillingEvent(db, { ...none, type: 'payment.failed' })).toEqual({
    kind: 'not_test',
  });
});
