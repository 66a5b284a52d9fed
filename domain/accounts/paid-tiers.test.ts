import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { PAST_DUE_GRACE_MS } from '../access/account-access.ts';
import { tierOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { readPepper } from '../access/pepper.ts';
import type { Tier } from '../access/tiers.ts';
import { closeAccount } from './account-closure.ts';
import { readAccountAccess, type SubscriptionRow } from './account-row.ts';
import { readAudit } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import { PERIOD_MS } from './billing-events.ts';
import type { BillingEvent } from './billing-provider.ts';
import { insertUser } from './new-user.ts';
import { sendTestBillingEvent, suspendAccount, unsuspendAccount } from './operator.ts';
import { createSubscriptions, renewDue, type Subscriptions } from './subscriptions.ts';
import { createTestBilling, payCheckout, type TestBilling } from './test-billing.ts';

const BY = { actor: 'user:usr_test', address: '203.0.113.7' } as const;
const DAY_MS = 86_400_000;

let namespace: DatabaseNamespace;
let db: Database;
let billing: TestBilling;
/** With billing on and off. */
let on: Subscriptions;
let off: Subscriptions;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  const pepper = readPepper(namespace.env.KEY_PEPPER_FILE!);
  billing = createTestBilling({ pepper, pageUrl: 'http://127.0.0.1:1/billing/test' });
  on = createSubscriptions({ db, billing, canBuy: true });
  off = createSubscriptions({ db, billing, canBuy: false });
});

afterAll(async () => {
  await db?.destroy();
});

type State = 'all well' | 'billing off' | 'past due' | 'unverified' | 'suspended';

/** An account in a state, and what its owner can ask for. */
interface Owner {
  readonly id: string;
  readonly subscriptions: Subscriptions;
  readonly ask: { readonly accountId: string; readonly isVerified: boolean } & typeof BY;
}

function inDays(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}

/** Where `PATCH /api/subscription` and the billing provider find the account. */
function ownerOf(id: string, state: State): Owner {
  return {
    id,
    subscriptions: state === 'billing off' ? off : on,
    ask: { ...BY, accountId: id, isVerified: state !== 'unverified' },
  };
}

async function newAccount(tier: Tier | null): Promise<string> {
  return (await createTestAccount(db, namespace, { tier })).id;
}

/** Brings an account into a state; events of the provider before it are older. */
async function enter(id: string, state: State): Promise<void> {
  const request = { actor: 'operator:root', accountId: id };
  if (state === 'suspended') await suspendAccount(db, { ...request, reason: 'test' });
  if (state === 'past due') await applyBillingEvent(db, event('payment.failed', id));
}

function setRow(id: string, row: Partial<SubscriptionRow>) {
  return db.updateTable('subscriptions').set(row).where('account_id', '=', id).execute();
}

function event(type: BillingEvent['type'], accountId: string, at = new Date()): BillingEvent {
  return { provider: 'test', eventId: newId('evt'), type, accountId, at };
}

async function tierNow(id: string, nowMs = Date.now()): Promise<Tier | undefined> {
  return tierOf((await readAccountAccess(db, id))!, nowMs);
}

/** Begins the checkout of a well-behaved owner. @returns its id */
async function checkoutOf(id: string, tier: Tier): Promise<string> {
  const { ask } = ownerOf(id, 'all well');
  const begun = await on.beginCheckout({ ...ask, tier, returnUrl: 'http://127.0.0.1/' });
  if (begun.kind !== 'ok') throw new Error(begun.kind);
  return begun.checkoutId;
}

const paid = (checkoutId: string, more: Partial<BillingEvent> = {}): BillingEvent => {
  const of = { provider: 'test', eventId: newId('evt'), at: new Date(), ...more };
  return { ...of, type: 'checkout.paid', checkoutId };
};

/** A way to a tier: what happens before the account enters the state, and the attempt in it. */
interface Path {
  readonly from: Tier | null;
  readonly before?: (id: string) => Promise<unknown>;
  readonly attempt: (owner: Owner, prepared: unknown) => Promise<{ readonly kind: string }>;
}

const buy = ({ subscriptions, ask }: Owner, tier: Tier) =>
  subscriptions.beginCheckout({ ...ask, tier, returnUrl: 'http://127.0.0.1/' });

const PATHS = {
  'a first checkout': { from: null, attempt: (owner) => buy(owner, 'pro') },
  'the checkout of an upgrade': { from: 'pro', attempt: (owner) => buy(owner, 'institutional') },
  'a change to a higher tier': {
    from: 'pro',
    attempt: ({ subscriptions, ask }) =>
      subscriptions.changeTier({ ...ask, tier: 'institutional' }),
  },
  'withdrawing a downgrade': {
    from: 'pro',
    before: (id) => on.changeTier({ ...ownerOf(id, 'all well').ask, tier: 'basic' }),
    attempt: ({ subscriptions, ask }) => subscriptions.changeTier({ ...ask, tier: 'pro' }),
  },
  'withdrawing a downgrade that has taken effect': {
    from: 'pro',
    before: async (id) => {
      await on.changeTier({ ...ownerOf(id, 'all well').ask, tier: 'basic' });
      await setRow(id, { period_end: inDays(-1) });
    },
    attempt: ({ subscriptions, ask }) => subscriptions.changeTier({ ...ask, tier: 'pro' }),
  },
  'choosing the lower tier again once it is in effect': {
    from: 'pro',
    before: async (id) => {
      await on.changeTier({ ...ownerOf(id, 'all well').ask, tier: 'basic' });
      await setRow(id, { period_end: inDays(-1) });
    },
    attempt: ({ subscriptions, ask }) => subscriptions.changeTier({ ...ask, tier: 'basic' }),
  },
  'resuming after a cancellation': {
    from: 'pro',
    before: (id) => on.cancel({ ...ownerOf(id, 'all well').ask, at: 'period_end' }),
    attempt: ({ subscriptions, ask }) => subscriptions.resume(ask),
  },
  'resuming after a cancelled period': {
    from: 'pro',
    before: async (id) => {
      await on.cancel({ ...ownerOf(id, 'all well').ask, at: 'period_end' });
      await setRow(id, { period_end: inDays(-1) });
    },
    attempt: ({ subscriptions, ask }) => subscriptions.resume(ask),
  },
  'an upgrade paid at the provider': {
    from: 'pro',
    before: (id) => checkoutOf(id, 'institutional'),
    attempt: (_, checkoutId) => applyBillingEvent(db, paid(checkoutId as string)),
  },
  'the renewal of the provider': {
    from: 'pro',
    attempt: ({ id }) => applyBillingEvent(db, event('payment.succeeded', id)),
  },
  "a renewal by the operator's command": {
    from: 'pro',
    attempt: ({ id }) =>
      sendTestBillingEvent(db, { ...BY, accountId: id, type: 'payment.succeeded' }),
  },
  'a renewal of an ended subscription': {
    from: 'pro',
    before: (id) => applyBillingEvent(db, event('subscription.ended', id)),
    attempt: ({ id }) =>
      sendTestBillingEvent(db, { ...BY, accountId: id, type: 'payment.succeeded' }),
  },
  'a checkout of an account that was closed since': {
    from: null,
    before: (id) => checkoutOf(id, 'pro'),
    attempt: async ({ id }, checkoutId) => {
      await closeAccount({ db, billing }, { ...BY, accountId: id });
      return applyBillingEvent(db, paid(checkoutId as string));
    },
  },
  'the restored account of a closed subscription': {
    from: 'pro',
    before: (id) => closeAccount({ db, billing }, { ...BY, accountId: id }),
    attempt: async ({ id, ask }) => {
      await db.updateTable('accounts').set({ status: 'active' }).where('id', '=', id).execute();
      await applyBillingEvent(db, event('payment.succeeded', id));
      return on.resume(ask);
    },
  },
} as const satisfies Record<string, Path>;

/** The answer and the tier afterwards, where they are not those of a subscription without trouble. */
type Row = readonly [path: keyof typeof PATHS, state: State, kind: string, tier: Tier | undefined];

const ROWS: readonly Row[] = [
  ['a first checkout', 'all well', 'ok', undefined],
  ['a first checkout', 'billing off', 'billing_off', undefined],
  ['a first checkout', 'unverified', 'email_unverified', undefined],
  ['a first checkout', 'suspended', 'account_suspended', undefined],
  ['the checkout of an upgrade', 'all well', 'ok', 'pro'],
  ['the checkout of an upgrade', 'billing off', 'billing_off', 'pro'],
  ['the checkout of an upgrade', 'past due', 'payment_overdue', 'pro'],
  ['the checkout of an upgrade', 'unverified', 'email_unverified', 'pro'],
  ['the checkout of an upgrade', 'suspended', 'account_suspended', undefined],
  ['a change to a higher tier', 'all well', 'payment_required', 'pro'],
  ['a change to a higher tier', 'billing off', 'payment_required', 'pro'],
  ['a change to a higher tier', 'past due', 'payment_required', 'pro'],
  ['a change to a higher tier', 'unverified', 'payment_required', 'pro'],
  ['a change to a higher tier', 'suspended', 'payment_required', undefined],
  ['withdrawing a downgrade', 'all well', 'ok', 'pro'],
  ['withdrawing a downgrade', 'billing off', 'billing_off', 'pro'],
  ['withdrawing a downgrade', 'past due', 'payment_overdue', 'pro'],
  ['withdrawing a downgrade', 'unverified', 'email_unverified', 'pro'],
  ['withdrawing a downgrade', 'suspended', 'account_suspended', undefined],
  ['withdrawing a downgrade that has taken effect', 'all well', 'payment_required', 'basic'],
  ['withdrawing a downgrade that has taken effect', 'billing off', 'payment_required', 'basic'],
  ['withdrawing a downgrade that has taken effect', 'past due', 'payment_required', 'basic'],
  ['withdrawing a downgrade that has taken effect', 'unverified', 'payment_required', 'basic'],
  ['withdrawing a downgrade that has taken effect', 'suspended', 'payment_required', undefined],
  ['choosing the lower tier again once it is in effect', 'all well', 'ok', 'basic'],
  ['choosing the lower tier again once it is in effect', 'past due', 'ok', 'basic'],
  ['resuming after a cancellation', 'all well', 'ok', 'pro'],
  ['resuming after a cancellation', 'billing off', 'billing_off', 'pro'],
  ['resuming after a cancellation', 'past due', 'payment_overdue', 'pro'],
  ['resuming after a cancellation', 'unverified', 'email_unverified', 'pro'],
  ['resuming after a cancellation', 'suspended', 'account_suspended', undefined],
  ['resuming after a cancelled period', 'all well', 'subscription_required', undefined],
  ['resuming after a cancelled period', 'past due', 'subscription_required', undefined],
  // Paid in full. Billing and addresses were checked when the checkout was begun.
  ['an upgrade paid at the provider', 'all well', 'applied', 'institutional'],
  ['an upgrade paid at the provider', 'billing off', 'applied', 'institutional'],
  ['an upgrade paid at the provider', 'past due', 'stale', 'pro'],
  ['an upgrade paid at the provider', 'unverified', 'applied', 'institutional'],
  ['an upgrade paid at the provider', 'suspended', 'applied', undefined],
  ['the renewal of the provider', 'all well', 'applied', 'pro'],
  ['the renewal of the provider', 'past due', 'applied', 'pro'],
  ['the renewal of the provider', 'suspended', 'applied', undefined],
  ["a renewal by the operator's command", 'billing off', 'applied', 'pro'],
  ["a renewal by the operator's command", 'past due', 'applied', 'pro'],
  ["a renewal by the operator's command", 'suspended', 'applied', undefined],
  ['a renewal of an ended subscription', 'all well', 'stale', undefined],
  ['a renewal of an ended subscription', 'past due', 'stale', undefined],
  ['a checkout of an account that was closed since', 'all well', 'stale', undefined],
  ['a checkout of an account that was closed since', 'suspended', 'stale', undefined],
  ['the restored account of a closed subscription', 'all well', 'subscription_required', undefined],
  ['the restored account of a closed subscription', 'past due', 'subscription_required', undefined],
];

describe('the path to a tier by', () => {
  test.each(ROWS)('%s, %s: %s, tier %s', async (name, state, kind, tier) => {
    const path: Path = PATHS[name];
    const id = await newAccount(path.from);
    const prepared = await path.before?.(id);
    await enter(id, state);
    const answer = await path.attempt(ownerOf(id, state), prepared);
    expect([answer.kind, await tierNow(id)]).toEqual([kind, tier]);
  });

  test('sign-up: none', async () => {
    const wanted = { email: `${newId('usr')}@example.com`, hash: 'x', address: '203.0.113.7' };
    const { id } = (await insertUser(db, { ...wanted, accountName: 'A' }))!;
    const { account_id: accountId } = await db
      .selectFrom('users')
      .select('account_id')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    expect(await tierNow(accountId)).toBeUndefined();
    const { ask } = ownerOf(accountId, 'unverified');
    expect(await on.changeTier({ ...ask, tier: 'pro' })).toEqual({ kind: 'subscription_required' });
    const renewal = event('payment.succeeded', accountId);
    expect((await applyBillingEvent(db, renewal)).kind).toBe('unknown');
    expect(await tierNow(accountId)).toBeUndefined();
  });

  test('the end of a suspension: what was paid, no more', async () => {
    const id = await newAccount('pro');
    await enter(id, 'suspended');
    await on.changeTier({ ...ownerOf(id, 'suspended').ask, tier: 'institutional' });
    await unsuspendAccount(db, { actor: 'operator:root', accountId: id });
    expect(await tierNow(id)).toBe('pro');
  });
});

describe('an upgrade', () => {
  test('states its price before, and begins a period when it is paid', async () => {
    const id = await newAccount('pro');
    await setRow(id, { period_end: inDays(15), cancel_at_period_end: true, next_tier: 'basic' });
    const begun = await buy(ownerOf(id, 'all well'), 'institutional');
    expect(begun).toMatchObject({ kind: 'ok', currency: 'USD', amountCents: 54_950 });
    expect(await tierNow(id)).toBe('pro');
    const at = new Date();
    const { checkoutId } = begun as { checkoutId: string };
    expect((await applyBillingEvent(db, paid(checkoutId, { at }))).kind).toBe('applied');
    expect(await on.read(id)).toMatchObject({
      tier: 'institutional',
      nextTier: undefined,
      periodEnd: new Date(at.getTime() + PERIOD_MS),
      cancelAtPeriodEnd: true,
    });
    expect(await payCheckout(db, checkoutId, id, 'paid')).toEqual({ kind: 'ok' });
  });

  test('can be paid until the period that it credits ends', async () => {
    const id = await newAccount('pro');
    const periodEnd = inDays(1 / 96);
    await setRow(id, { period_end: periodEnd });
    const begun = await buy(ownerOf(id, 'all well'), 'institutional');
    expect(begun).toMatchObject({ kind: 'ok', expiresAt: periodEnd });
    await setRow(id, { period_end: inDays(-0.01) });
    expect(await buy(ownerOf(id, 'all well'), 'institutional')).toMatchObject({ kind: 'conflict' });
  });

  test.each([
    [
      'was cancelled at once',
      (id: string) => on.cancel({ ...ownerOf(id, 'all well').ask, at: 'now' }),
    ],
    ['ended', (id: string) => applyBillingEvent(db, event('subscription.ended', id))],
    ['is past due', (id: string) => applyBillingEvent(db, event('payment.failed', id))],
    ['is another one', (id: string) => setRow(id, { provider_reference: newId('sub') })],
    ['has the tier already', (id: string) => setRow(id, { tier: 'institutional' })],
  ] as const)(
    'of a subscription that %s has no effect, and the operator finds it',
    async (_, change) => {
      const id = await newAccount('pro');
      const checkoutId = await checkoutOf(id, 'institutional');
      await change(id);
      const before = await on.read(id);
      expect(await applyBillingEvent(db, paid(checkoutId))).toEqual({ kind: 'stale' });
      expect(await on.read(id)).toEqual(before);
      const [entry] = await readAudit(db, id, { limit: 1 });
      expect(entry).toMatchObject({ action: 'checkout.paid', target: checkoutId });
      expect(entry!.detail).toHaveProperty('without_effect');
      expect(await payCheckout(db, checkoutId, id, 'paid')).toMatchObject({ status: 'void' });
    },
  );

  test('of another provider’s subscription is refused', async () => {
    const id = await newAccount('pro');
    await setRow(id, { provider: 'stripe' });
    expect(await buy(ownerOf(id, 'all well'), 'institutional')).toMatchObject({ kind: 'conflict' });
  });

  test('replaces the period before, also if a payment for that arrives late', async () => {
    const id = await newAccount('pro');
    const at = new Date();
    const upgrade = paid(await checkoutOf(id, 'institutional'), { at });
    await applyBillingEvent(db, upgrade);
    const late = event('payment.succeeded', id, inDays(-2));
    await applyBillingEvent(db, { ...late, tier: 'pro', periodEnd: inDays(300) });
    const periodEnd = new Date(at.getTime() + PERIOD_MS);
    expect(await on.read(id)).toMatchObject({ tier: 'institutional', periodEnd });
  });

  test('that arrives after a renewal keeps the end of the renewed period', async () => {
    const id = await newAccount('pro');
    const upgrade = paid(await checkoutOf(id, 'institutional'));
    const renewal = event('payment.succeeded', id);
    await applyBillingEvent(db, { ...renewal, periodEnd: inDays(31) });
    await applyBillingEvent(db, { ...upgrade, at: new Date(renewal.at.getTime() - 1_000) });
    expect(await on.read(id)).toMatchObject({ tier: 'institutional' });
    const { periodEnd } = (await on.read(id))!;
    expect(periodEnd.getTime()).toBeGreaterThan(Date.now() + PERIOD_MS);
  });
});

describe('a downgrade', () => {
  const choose = (id: string, tier: Tier) =>
    on.changeTier({ ...ownerOf(id, 'all well').ask, tier });

  test('takes effect at the end of the period, by the clock and by the renewal', async () => {
    const id = await newAccount('institutional');
    const { periodEnd } = (await on.read(id))!;
    expect(await choose(id, 'pro')).toMatchObject({ subscription: { nextTier: 'pro' } });
    expect(await tierNow(id, periodEnd.getTime() - 1)).toBe('institutional');
    expect(await tierNow(id, periodEnd.getTime())).toBe('pro');
    const ended = inDays(-1);
    await setRow(id, { period_end: ended });
    expect(await on.read(id)).toMatchObject({ tier: 'pro', nextTier: undefined });
    const row = () =>
      db.selectFrom('subscriptions').selectAll().where('account_id', '=', id).executeTakeFirst();
    while ((await row())?.next_tier !== null) await renewDue(db);
    expect(await row()).toMatchObject({ tier: 'pro', status: 'active' });
    expect((await row())!.period_end).toEqual(new Date(ended.getTime() + PERIOD_MS));
  });

  test('waits for the period’s end, whatever is paid before', async () => {
    const id = await newAccount('pro');
    await choose(id, 'basic');
    const early = event('payment.succeeded', id);
    await applyBillingEvent(db, { ...early, periodEnd: inDays(29) });
    expect(await on.read(id)).toMatchObject({ tier: 'pro', nextTier: 'basic' });
    const renewed = event('payment.succeeded', id, inDays(-1));
    await setRow(id, { period_end: inDays(-1.5) });
    await applyBillingEvent(db, renewed);
    expect(await on.read(id)).toMatchObject({ tier: 'basic', nextTier: undefined });
  });

  test('is not brought forward by an earlier payment that arrives late', async () => {
    const id = await newAccount('pro');
    await choose(id, 'basic');
    await setRow(id, { period_end: inDays(-1) });
    const late = event('payment.succeeded', id, inDays(-3));
    await applyBillingEvent(db, { ...late, periodEnd: inDays(-1) });
    expect(await on.read(id)).toMatchObject({ tier: 'basic' });
    await applyBillingEvent(db, { ...event('payment.succeeded', id), tier: 'basic' });
    expect(await on.read(id)).toMatchObject({ tier: 'basic', nextTier: undefined });
  });

  test('while past due gives no more than the lower tier, and ends after 7 days', async () => {
    const id = await newAccount('pro');
    await choose(id, 'basic');
    await setRow(id, { period_end: inDays(-1) });
    await enter(id, 'past due');
    expect(await tierNow(id)).toBe('basic');
    expect(await tierNow(id, Date.now() + PAST_DUE_GRACE_MS + 1)).toBeUndefined();
  });
});
