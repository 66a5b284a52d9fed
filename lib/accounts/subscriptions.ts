import { sql } from 'kysely';
import { subscriptionStanding, tierEndsAtMs } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import type { Tier } from '../access/tiers.ts';
import type { Database } from '../postgres/database.ts';
import { tellChange } from './account-events.ts';
import { lockAccount, readSubscriptionRow, type SubscriptionRow } from './account-row.ts';
import { writeAudit } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import { PERIOD_MS } from './billing-log.ts';
import type { BilledSubscription, BillingEvent, BillingProvider } from './billing-provider.ts';
import { type CheckoutBegun, insertCheckout, type SubscriptionRequest } from './checkouts.ts';
import { TEST_PROVIDER } from './test-billing.ts';

/** A subscription as its owner sees it. */
export interface SubscriptionRecord {
  readonly tier: Tier;
  readonly status: 'active' | 'past_due' | 'ended';
  readonly pastDueSince: Date | undefined;
  readonly periodEnd: Date;
  readonly cancelAtPeriodEnd: boolean;
  /** `test`: no money moves. */
  readonly provider: string;
  /** When access ends by the clock alone: cancelled, or 7 days past due. */
  readonly accessEndsAt: Date | undefined;
  /** Whether it gives access now; not whether the operator has suspended the account. */
  readonly inForce: boolean;
}

export type SubscriptionChanged =
  | { readonly kind: 'ok'; readonly subscription: SubscriptionRecord }
  | { readonly kind: 'subscription_required' };

/** The subscription of an account. */
export interface Subscriptions {
  read(accountId: string): Promise<SubscriptionRecord | undefined>;
  /**
   * Begins a payment, the only one that can be paid: those that were begun before are void. That
   * the user's address is verified is the caller's to check.
   */
  beginCheckout(
    request: SubscriptionRequest & { readonly tier: Tier; readonly returnUrl: string },
  ): Promise<CheckoutBegun>;
  /** Up or down, at once. What is too much for the new tier is disabled by its readers, not deleted. */
  changeTier(request: SubscriptionRequest & { readonly tier: Tier }): Promise<SubscriptionChanged>;
  /** Again it changes nothing. */
  cancel(
    request: SubscriptionRequest & { readonly at: 'period_end' | 'now' },
  ): Promise<SubscriptionChanged>;
  /** Takes back a cancellation whose time has not come. */
  resume(request: SubscriptionRequest): Promise<SubscriptionChanged>;
}

/** Subscriptions that one run of `renewDue` renews or ends; the rest is the next run's. */
const DUE_MAX = 500;

export interface SubscriptionsOptions {
  readonly db: Database;
  readonly billing: BillingProvider;
}

/** Changes at the provider come first: when it refuses, nothing has changed here. */
export function createSubscriptions({ db, billing }: SubscriptionsOptions): Subscriptions {
  const change = async (
    request: SubscriptionRequest,
    action: string,
    atProvider: (at: BilledSubscription) => Promise<void>,
    apply: (row: SubscriptionRow) => SubscriptionRow,
  ): Promise<SubscriptionChanged> => {
    const present = await readSubscriptionRow(db, request.accountId);
    if (present === undefined || !isInForce(present)) return { kind: 'subscription_required' };
    await atProvider({ accountId: request.accountId, reference: present.provider_reference });
    return db.transaction().execute(async (tx) => {
      await lockAccount(tx, request.accountId);
      const before = await readSubscriptionRow(tx, request.accountId);
      if (before === undefined || !isInForce(before)) return { kind: 'subscription_required' };
      const after = apply(before);
      if (isSame(before, after)) return { kind: 'ok', subscription: subscriptionOf(before) };
      // updated_at stays: it is the provider's clock, by which its events are put in order.
      await tx
        .updateTable('subscriptions')
        .set(after)
        .where('account_id', '=', request.accountId)
        .execute();
      const { tier, status, cancel_at_period_end } = after;
      await writeAudit(tx, {
        ...request,
        action,
        target: after.provider_reference,
        detail: { tier, status, cancel_at_period_end, previous_tier: before.tier },
      });
      await tellChange(tx, before, after, newId('chg'));
      return { kind: 'ok', subscription: subscriptionOf(after) };
    });
  };
  return {
    read: async (accountId) => {
      const row = await readSubscriptionRow(db, accountId);
      return row === undefined ? undefined : subscriptionOf(row);
    },
    beginCheckout: async (request) => {
      const begun = await insertCheckout(db, billing.name, request);
      if (begun.kind !== 'ok') return begun;
      const { accountId, tier, returnUrl } = request;
      const { checkoutId, voided, expiresAt } = begun;
      for (const id of voided) await billing.voidCheckout(id);
      const { url } = await billing.createCheckout({ accountId, tier, checkoutId, returnUrl });
      return { kind: 'ok', checkoutId, url, expiresAt };
    },
    changeTier: (request) =>
      change(
        request,
        'subscription.tier_changed',
        (at) => billing.changeTier(at, request.tier),
        (row) => ({ ...row, tier: request.tier }),
      ),
    cancel: (request) =>
      change(
        request,
        'subscription.cancelled',
        (at) => billing.cancel(at, request.at),
        (row) =>
          request.at === 'now'
            ? { ...row, status: 'ended', past_due_since: null }
            : { ...row, cancel_at_period_end: true },
      ),
    resume: (request) =>
      change(
        request,
        'subscription.resumed',
        (at) => billing.resume(at),
        (row) => ({ ...row, cancel_at_period_end: false }),
      ),
  };
}

/**
 * Renews subscriptions of the test provider whose period has ended, and ends those that were
 * cancelled to it. Each is an event with an id of subscription and period, so that any number of
 * processes may run it at once, and again. Past due ones wait for a payment.
 * @returns how many it changed, at most 500 a run
 */
export async function renewDue(db: Database): Promise<number> {
  const rows = await db
    .selectFrom('subscriptions')
    .selectAll()
    .where('provider', '=', TEST_PROVIDER)
    .where('period_end', '<=', sql<Date>`now()`)
    .where((is) =>
      is.or([
        is('status', '=', 'active'),
        is.and([is('status', '=', 'past_due'), is('cancel_at_period_end', '=', true)]),
      ]),
    )
    .orderBy('period_end')
    .limit(DUE_MAX)
    .execute();
  let changed = 0;
  for (const row of rows) {
    // Another process was here, or its owner changed it: the next run sees what is due then.
    const isAsRead = (now: SubscriptionRow | undefined) =>
      now !== undefined &&
      isSame(row, now) &&
      now.provider_reference === row.provider_reference &&
      now.period_end.getTime() === row.period_end.getTime();
    const due = dueEvent(row);
    const { kind } = await applyBillingEvent(db, due, { actor: 'system' }, isAsRead);
    if (kind === 'applied') changed += 1;
  }
  return changed;
}

function dueEvent(row: SubscriptionRow): BillingEvent {
  const at = new Date();
  const verb = row.cancel_at_period_end ? 'end' : 'renew';
  const behindMs = at.getTime() - row.period_end.getTime();
  const periods = Math.floor(behindMs / PERIOD_MS) + 1;
  return {
    provider: TEST_PROVIDER,
    eventId: `${row.provider_reference}/${verb}/${row.period_end.toISOString()}`,
    type: row.cancel_at_period_end ? 'subscription.ended' : 'payment.succeeded',
    accountId: row.account_id,
    reference: row.provider_reference,
    periodEnd: new Date(row.period_end.getTime() + periods * PERIOD_MS),
    at,
  };
}

function isInForce(row: SubscriptionRow): boolean {
  return subscriptionOf(row).inForce;
}

function isSame(before: SubscriptionRow, after: SubscriptionRow): boolean {
  return (
    before.tier === after.tier &&
    before.status === after.status &&
    before.cancel_at_period_end === after.cancel_at_period_end
  );
}

/** A row as its owner sees it. */
export function subscriptionOf(row: SubscriptionRow): SubscriptionRecord {
  const subscription = {
    tier: row.tier,
    status: row.status,
    pastDueSinceMs: row.past_due_since?.getTime(),
    periodEndMs: row.period_end.getTime(),
    cancelAtPeriodEnd: row.cancel_at_period_end,
  };
  const endsAtMs = tierEndsAtMs({ subscription });
  return {
    tier: row.tier,
    status: row.status,
    pastDueSince: row.past_due_since ?? undefined,
    periodEnd: row.period_end,
    cancelAtPeriodEnd: row.cancel_at_period_end,
    provider: row.provider,
    accessEndsAt: endsAtMs === undefined ? undefined : new Date(endsAtMs),
    inForce: subscriptionStanding(subscription, Date.now()) === 'in_force',
  };
}
