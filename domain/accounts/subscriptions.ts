import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import { subscriptionState, tierAt, tierEndsAtMs } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import type { Tier } from '../access/tiers.ts';
import { isSameSubscription, raiseSubscriptionChanged } from './account-events.ts';
import {
  lockAccount,
  readAccountAccess,
  readSubscriptionRow,
  type SubscriptionRow,
} from './account-row.ts';
import { type AccountRequest, writeAudit } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import { PERIOD_MS } from './billing-events.ts';
import type { BilledSubscription, BillingEvent, BillingProvider } from './billing-provider.ts';
import { type Buyer, insertCheckout, type NoPurchase, purchaseRefusal } from './checkouts.ts';
import { isUpgrade } from './prices.ts';
import { TEST_PROVIDER } from './test-billing.ts';

export type SubscriptionRecord = ReturnType<typeof subscriptionOf>;

/** `payment_required`: the tier is higher than the present one, so it must be bought by a checkout. */
export type SubscriptionChanged =
  | { readonly kind: 'ok'; readonly subscription: SubscriptionRecord }
  | { readonly kind: 'subscription_required' }
  | { readonly kind: 'payment_required'; readonly tier: Tier }
  | NoPurchase;

export type Subscriptions = ReturnType<typeof createSubscriptions>;

type ChangeRequest = AccountRequest & Buyer;

interface SubscriptionDeps {
  readonly db: Database;
  readonly billing: BillingProvider;
  /** Whether anything can be bought; false = no tier can be gained or kept for another period. */
  readonly canBuy: boolean;
}

/** Subscriptions per run of `renewDue`; the remaining ones wait for the next run. */
const DUE_MAX = 500;

/** The subscription of an account. The provider is changed first: if it refuses, nothing has changed here. */
export function createSubscriptions(deps: SubscriptionDeps) {
  const { db, billing, canBuy } = deps;
  return {
    async read(accountId: string): Promise<SubscriptionRecord | undefined> {
      const row = await readSubscriptionRow(db, accountId);
      return row === undefined ? undefined : subscriptionOf(row);
    },
    /** Begins the payment of a new tier or an upgrade; earlier ones become void. */
    async beginCheckout(
      request: ChangeRequest & { readonly tier: Tier; readonly returnUrl: string },
    ) {
      const begun = await insertCheckout(db, { name: billing.name, canBuy }, request);
      if (begun.kind !== 'ok') return begun;
      const { accountId, tier, returnUrl } = request;
      const { voided, upgrades, ...checkout } = begun;
      for (const id of voided) await billing.voidCheckout(id);
      const asked = { ...checkout, accountId, tier, returnUrl, upgrades };
      return { ...checkout, tier, url: (await billing.createCheckout(asked)).url };
    },
    /**
     * Chooses a lower tier from the next period on, or the present one again. What is above the lower
     * tier's limits is then disabled, not deleted.
     */
    changeTier: (request: ChangeRequest & { readonly tier: Tier }) =>
      changeSubscription(deps, request, {
        action: 'subscription.tier_changed',
        atProvider: (subscription) => billing.scheduleTier(subscription, request.tier),
        plan: (row) => planTier(row, request.tier),
      }),
    /** Idempotent. */
    cancel: (request: ChangeRequest & { readonly at: 'period_end' | 'now' }) =>
      changeSubscription(deps, request, {
        action: 'subscription.cancelled',
        atProvider: (subscription) => billing.cancel(subscription, request.at),
        plan: () => ({
          kind: 'ok',
          values:
            request.at === 'now'
              ? { status: 'ended', past_due_since: null, next_tier: null }
              : { cancel_at_period_end: true },
        }),
      }),
    /** Withdraws a cancellation before the period's end. */
    resume: (request: ChangeRequest) =>
      changeSubscription(deps, request, {
        action: 'subscription.resumed',
        atProvider: (subscription) => billing.resume(subscription),
        plan: ({ cancel_at_period_end: buys }) => {
          return { kind: 'ok', buys, values: { cancel_at_period_end: false } };
        },
      }),
  };
}

/** A change of a subscription in force; `buys`: it keeps a tier that would otherwise end. */
type Plan =
  | { readonly kind: 'ok'; readonly values: Partial<SubscriptionRow>; readonly buys?: boolean }
  | Exclude<SubscriptionChanged, { kind: 'ok' }>;

/** Nothing is paid here, so no tier above the present one, by the clock too, can follow. */
function planTier(row: SubscriptionRow, tier: Tier): Plan {
  const { tier: present, nextTier } = subscriptionOf(row);
  if (isUpgrade(present, tier)) return { kind: 'payment_required', tier };
  if (tier !== present) return { kind: 'ok', values: { next_tier: tier } };
  if (nextTier === undefined) return { kind: 'ok', values: {} };
  return { kind: 'ok', buys: true, values: { next_tier: null } };
}

async function changeSubscription(
  { db, canBuy }: SubscriptionDeps,
  request: ChangeRequest,
  {
    action,
    atProvider,
    plan,
  }: {
    readonly action: string;
    readonly atProvider: (subscription: BilledSubscription) => Promise<void>;
    readonly plan: (row: SubscriptionRow) => Plan;
  },
): Promise<SubscriptionChanged> {
  const { accountId } = request;
  const planned = async (on: Database) => {
    const row = await readSubscriptionRow(on, accountId);
    if (row === undefined || !subscriptionOf(row).inForce) return REQUIRED;
    const made = plan(row);
    if (made.kind !== 'ok') return made;
    const refusal = made.buys ? await refusalOf(on, request, row, canBuy) : undefined;
    return refusal ?? { ...made, row };
  };
  const first = await planned(db);
  if (first.kind !== 'ok') return first;
  await atProvider({ accountId, reference: first.row.provider_reference });
  return inTurn(db, accountId, async (tx): Promise<SubscriptionChanged> => {
    await lockAccount(tx, accountId);
    const made = await planned(tx);
    if (made.kind !== 'ok') return made;
    const before = made.row;
    const after = { ...before, ...made.values };
    if (isSameSubscription(before, after))
      return { kind: 'ok', subscription: subscriptionOf(before) };
    // updated_at stays: it follows the provider's clock, which orders the provider's events.
    await tx.updateTable('subscriptions').set(after).where('account_id', '=', accountId).execute();
    const { tier, status, cancel_at_period_end, next_tier } = after;
    await writeAudit(tx, {
      ...request,
      action,
      target: after.provider_reference,
      detail: { tier, status, cancel_at_period_end, next_tier, previous_tier: before.tier },
    });
    await raiseSubscriptionChanged(tx, before, after, newId('chg'));
    return { kind: 'ok', subscription: subscriptionOf(after) };
  });
}

const REQUIRED = { kind: 'subscription_required' } as const;

async function refusalOf(
  db: Database,
  buyer: ChangeRequest,
  { status }: SubscriptionRow,
  canBuy: boolean,
): Promise<NoPurchase | undefined> {
  const account = await readAccountAccess(db, buyer.accountId);
  const refusal = purchaseRefusal(buyer, account, canBuy);
  return refusal ?? (status === 'past_due' ? { kind: 'payment_overdue' } : undefined);
}

/**
 * Renews subscriptions of the test provider whose period is over, and ends cancelled ones. Each
 * change is an event whose id names subscription and period, so any number of processes may run this
 * concurrently and repeatedly. Past due subscriptions wait for a payment.
 * @returns how many were changed, at most 500 per run
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
    // If another process or the owner has changed the row, the next run checks it again.
    const isAsRead = (now: SubscriptionRow | undefined) =>
      now !== undefined &&
      isSameSubscription(row, now) &&
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
    tier: row.next_tier ?? undefined,
    periodEnd: new Date(row.period_end.getTime() + periods * PERIOD_MS),
    at,
  };
}

/** A row as its owner sees it. */
export function subscriptionOf(row: SubscriptionRow) {
  const subscription = {
    tier: row.tier,
    status: row.status,
    pastDueSinceMs: row.past_due_since?.getTime(),
    periodEndMs: row.period_end.getTime(),
    cancelAtPeriodEnd: row.cancel_at_period_end,
    nextTier: row.next_tier ?? undefined,
  };
  const endsAtMs = tierEndsAtMs({ subscription });
  const tier = tierAt(subscription, Date.now());
  return {
    tier,
    /** The lower tier from `periodEnd` on. */
    nextTier: tier === row.next_tier ? undefined : subscription.nextTier,
    status: row.status,
    pastDueSince: row.past_due_since ?? undefined,
    periodEnd: row.period_end,
    cancelAtPeriodEnd: row.cancel_at_period_end,
    /** `test`: no money moves. */
    provider: row.provider,
    /** When access ends without a further change: cancelled, or 7 days past due. */
    accessEndsAt: endsAtMs === undefined ? undefined : new Date(endsAtMs),
    /** Whether the subscription gives access now; a suspended account is not considered. */
    inForce: subscriptionState(subscription, Date.now()) === 'in_force',
  };
}
