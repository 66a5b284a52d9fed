import type { Selectable, Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { tierAt } from '../access/entitlement.ts';
import type { Tier } from '../access/tiers.ts';
import { raisePaymentFailed, raiseSubscriptionChanged } from './account-events.ts';
import { lockAccount, readSubscriptionRow, type SubscriptionRow } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';
import {
  isPayment,
  paidUntil,
  type ReceivedEvent,
  readEvents,
  type SubscriptionEvent,
  storeEvent,
} from './billing-events.ts';
import { foldEvents, lastPaidMs } from './billing-fold.ts';
import type { BillingEvent } from './billing-provider.ts';
import { isUpgrade } from './prices.ts';

export type BillingOutcome =
  | { readonly kind: 'applied'; readonly accountId: string }
  /** The event had its effect before. */
  | { readonly kind: 'repeat' }
  /**
   * No effect on the present subscription: a newer event is known, or the event belongs to another
   * subscription. It is stored, and takes effect once that subscription is bought.
   */
  | { readonly kind: 'stale' }
  /** The checkout or subscription is unknown, perhaps not yet known: not stored, so send it again. */
  | { readonly kind: 'unknown' };

/**
 * Applies an event, raises the account events that follow, and writes the audit entry, all in one
 * transaction. Each (provider, id) has effect once, even if it arrives many times concurrently.
 *
 * Events may arrive in any order: a subscription is derived from all its stored events
 * (`foldEvents`), not from their order of arrival. A late failure therefore does not undo the payment
 * that followed it, and a late payment is not lost. An event that arrives before the checkout of its
 * subscription is stored until the checkout is paid.
 * @param requester who caused the event, if not the provider
 * @param isWanted checks the subscription under the lock: false = the event is no longer of use and is
 * not stored
 */
export async function applyBillingEvent(
  db: Database,
  event: BillingEvent,
  requester: Requester = { actor: `billing:${event.provider}` },
  isWanted: (row: SubscriptionRow | undefined) => boolean = () => true,
): Promise<BillingOutcome> {
  const accountId = await accountOf(db, event);
  if (accountId === undefined) return { kind: 'unknown' };
  return inTurn(db, accountId, async (tx): Promise<BillingOutcome> => {
    if (!(await lockAccount(tx, accountId))) return { kind: 'unknown' };
    const before = await readSubscriptionRow(tx, accountId);
    const checkout = await readCheckout(tx, event);
    const reference =
      event.reference ?? checkout?.upgrades ?? event.checkoutId ?? before?.provider_reference;
    if (reference === undefined) return { kind: 'unknown' };
    if (!isWanted(before)) return { kind: 'stale' };
    // If the provider's clock is ahead, later events must not become stale.
    const at = new Date(Math.min(event.at.getTime(), Date.now()));
    const tier = event.tier ?? (event.type === 'checkout.paid' ? checkout?.tier : undefined);
    const arrived: ReceivedEvent = { event: { ...event, tier }, accountId, reference, at };
    if (!(await storeEvent(tx, arrived))) return { kind: 'repeat' };
    const audit = (detail: object) =>
      writeAudit(tx, {
        ...requester,
        accountId,
        action: event.type,
        target: event.checkoutId ?? reference,
        detail: { event_id: event.eventId, occurred_at: at, ...detail },
      });
    let after: SubscriptionRow | undefined;
    if (checkout !== undefined) {
      const ended = await endCheckout(tx, event, checkout, before);
      // The payment buys nothing, so the operator must be able to find it.
      if (typeof ended !== 'boolean') await audit(ended);
      if (ended !== true) return { kind: 'stale' };
      if (event.type === 'checkout.failed') {
        await audit({});
        return { kind: 'applied', accountId };
      }
      after = bought(arrived, await readEvents(tx, arrived), checkout, before);
    } else after = before && changed(before, arrived, await readEvents(tx, arrived));
    if (after === undefined) return { kind: 'stale' };
    await putSubscription(tx, after);
    await audit({ tier: after.tier, status: after.status, period_end: after.period_end });
    if (event.type === 'payment.failed') await raisePaymentFailed(tx, after, event.eventId);
    else await raiseSubscriptionChanged(tx, before, after, event.eventId);
    return { kind: 'applied', accountId };
  });
}

/** Finds the account of an event, which never changes, before its turn is taken. */
async function accountOf(
  db: Database,
  { provider, checkoutId, reference, accountId }: BillingEvent,
): Promise<string | undefined> {
  if (checkoutId !== undefined) {
    const checkout = await db
      .selectFrom('checkouts')
      .select('account_id')
      .where('id', '=', checkoutId)
      .where('provider', '=', provider)
      .executeTakeFirst();
    return checkout?.account_id;
  }
  if (reference === undefined) return accountId;
  const subscription = await db
    .selectFrom('subscriptions')
    .select('account_id')
    .where('provider', '=', provider)
    .where('provider_reference', '=', reference)
    .executeTakeFirst();
  return subscription?.account_id ?? accountId;
}

type CheckoutRow = Pick<Selectable<Tables['checkouts']>, 'id' | 'tier' | 'status' | 'upgrades'>;

/** Reads the checkout that an event ends; undefined for an event of a subscription. */
async function readCheckout(
  tx: Transaction<Tables>,
  { type, checkoutId }: BillingEvent,
): Promise<CheckoutRow | undefined> {
  if (type !== 'checkout.paid' && type !== 'checkout.failed') return undefined;
  return tx
    .selectFrom('checkouts')
    .select(['id', 'tier', 'status', 'upgrades'])
    .where('id', '=', checkoutId ?? '')
    .executeTakeFirstOrThrow();
}

/**
 * Ends a checkout. A payment overrides an earlier failure: the first card may be refused and a second
 * one accepted. @returns false = it has ended before; an object = why its payment has no effect
 */
async function endCheckout(
  tx: Transaction<Tables>,
  { type }: BillingEvent,
  checkout: CheckoutRow,
  present: SubscriptionRow | undefined,
): Promise<boolean | { readonly without_effect: string }> {
  const isPaid = type === 'checkout.paid';
  if (checkout.status === 'void') {
    return isPaid && { without_effect: 'the checkout was void' };
  }
  const mayEnd = checkout.status === 'open' || (isPaid && checkout.status === 'failed');
  if (!mayEnd) return false;
  const isOutdated = isPaid && checkout.upgrades !== null && !isUpgradable(checkout, present);
  const end = isPaid ? 'paid' : 'failed';
  await tx
    .updateTable('checkouts')
    .set({ status: isOutdated ? 'void' : end })
    .where('id', '=', checkout.id)
    .execute();
  return isOutdated ? { without_effect: 'the subscription to upgrade has changed' } : true;
}

/** Whether the subscription that a checkout upgrades is still the one for which its credit holds. */
function isUpgradable({ upgrades, tier }: CheckoutRow, present: SubscriptionRow | undefined) {
  return (
    present?.provider_reference === upgrades &&
    present.status === 'active' &&
    isUpgrade(present.tier, tier)
  );
}

/** A new subscription, or the present one with a higher tier and a period that begins anew. */
function bought(
  { event, accountId, reference, at }: ReceivedEvent,
  events: readonly SubscriptionEvent[],
  checkout: CheckoutRow,
  present: SubscriptionRow | undefined,
): SubscriptionRow {
  const later = events.find(({ tier, at: time }) => tier !== null && time > at);
  const isUpgraded = checkout.upgrades !== null;
  const row: SubscriptionRow = {
    account_id: accountId,
    tier: later?.tier ?? event.tier ?? checkout.tier,
    status: 'active',
    past_due_since: null,
    period_end: paidUntil(event, at),
    // An upgrade does not withdraw a cancellation.
    cancel_at_period_end: isUpgraded && present?.cancel_at_period_end === true,
    next_tier: null,
    provider: event.provider,
    provider_reference: reference,
    updated_at: at,
  };
  return foldEvents(row, events);
}

/** @returns undefined if the event does not change the present subscription */
function changed(
  before: SubscriptionRow,
  { event, reference, at }: ReceivedEvent,
  events: readonly SubscriptionEvent[],
): SubscriptionRow | undefined {
  const isOther = before.provider !== event.provider || reference !== before.provider_reference;
  // Only a checkout reopens an ended subscription.
  if (isOther || before.status === 'ended') return undefined;
  if (event.type === 'payment.failed' && at.getTime() <= lastPaidMs(events)) return undefined;
  return foldEvents(
    {
      ...before,
      ...(isPayment(event) ? paidTier(before, event.tier, at, events) : {}),
      updated_at: at > before.updated_at ? at : before.updated_at,
    },
    events,
  );
}

/** The tier that a payment pays for: by itself that of its time, so a downgrade counts from its end. */
function paidTier(
  { tier, next_tier: next, period_end: end }: SubscriptionRow,
  stated: Tier | undefined,
  at: Date,
  events: readonly SubscriptionEvent[],
): Pick<SubscriptionRow, 'tier' | 'next_tier'> {
  const isNewestTier = events.every((other) => other.tier === null || other.at <= at);
  const times = { tier, nextTier: next ?? undefined, periodEndMs: end.getTime() };
  const paid = isNewestTier ? (stated ?? tierAt(times, at.getTime())) : tier;
  return { tier: paid, next_tier: at >= end || paid === next ? null : next };
}

async function putSubscription(tx: Transaction<Tables>, row: SubscriptionRow): Promise<void> {
  await tx
    .insertInto('subscriptions')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(row))
    .execute();
}
