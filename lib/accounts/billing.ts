import type { Transaction } from 'kysely';
import type { Tier } from '../access/tiers.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { tellChange, tellFailure } from './account-events.ts';
import { lockAccount, readSubscriptionRow, type SubscriptionRow } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';
import { foldEvents, lastPaidMs } from './billing-fold.ts';
import {
  type Arrived,
  eventsOf,
  isPayment,
  paidUntil,
  remember,
  type SubscriptionEvent,
} from './billing-log.ts';
import type { BillingEvent } from './billing-provider.ts';

export type BillingOutcome =
  | { readonly kind: 'applied'; readonly accountId: string }
  /** It had its effect before. */
  | { readonly kind: 'repeat' }
  /**
   * No effect on the present subscription: something newer is known, or it tells of another one.
   * It is remembered, and counts as soon as that other one is bought.
   */
  | { readonly kind: 'stale' }
  /** No such checkout or subscription here, perhaps not yet: not remembered, so send it again. */
  | { readonly kind: 'unknown' };

/**
 * Lets an event have its effect, with what is to be told and the audit entry, in one transaction.
 * The same (provider, id) has effect once, also when it comes many times at the same moment.
 *
 * Events may come in any order: a subscription follows from all events of its own that were ever
 * remembered (`foldEvents`), not from the order of their arrival. So a failure that comes late does
 * not undo the payment that followed it, and a payment that comes late is not lost. An event that
 * overtakes the checkout of its subscription is remembered until that is paid.
 * @param requester who set it off, when it was not the provider
 * @param isWanted looks at the subscription under the lock: false = the event is of no use any more,
 * and is not remembered
 */
export async function applyBillingEvent(
  db: Database,
  event: BillingEvent,
  requester: Requester = { actor: `billing:${event.provider}` },
  isWanted: (row: SubscriptionRow | undefined) => boolean = () => true,
): Promise<BillingOutcome> {
  return db.transaction().execute(async (tx): Promise<BillingOutcome> => {
    const accountId = await accountOf(tx, event);
    if (accountId === undefined || !(await lockAccount(tx, accountId))) return { kind: 'unknown' };
    const before = await readSubscriptionRow(tx, accountId);
    const reference = event.reference ?? event.checkoutId ?? before?.provider_reference;
    if (reference === undefined) return { kind: 'unknown' };
    if (!isWanted(before)) return { kind: 'stale' };
    // A provider's clock that is ahead must not make all that follows stale.
    const at = new Date(Math.min(event.at.getTime(), Date.now()));
    const arrived: Arrived = { event, accountId, reference, at };
    if (!(await remember(tx, arrived))) return { kind: 'repeat' };
    const audit = (detail: object) =>
      writeAudit(tx, {
        ...requester,
        accountId,
        action: event.type,
        target: event.checkoutId ?? reference,
        detail: { event_id: event.eventId, occurred_at: at, ...detail },
      });
    if (event.type === 'checkout.failed') {
      if ((await endCheckout(tx, event)).kind !== 'ended') return { kind: 'stale' };
      await audit({});
      return { kind: 'applied', accountId };
    }
    let after: SubscriptionRow | undefined;
    if (event.type === 'checkout.paid') {
      const checkout = await endCheckout(tx, event);
      // The money is there and buys nothing: the operator must be able to find it.
      if (checkout.kind === 'void') await audit({ in_vain: 'a newer checkout was begun' });
      if (checkout.kind !== 'ended') return { kind: 'stale' };
      const events = await eventsOf(tx, arrived);
      const overtaken = events.find(({ tier, at: later }) => tier !== null && later > at);
      after = foldEvents(bought(arrived, overtaken?.tier ?? checkout.tier), events);
    } else after = before && changed(before, arrived, await eventsOf(tx, arrived));
    if (after === undefined) return { kind: 'stale' };
    await putSubscription(tx, after);
    await audit({ tier: after.tier, status: after.status, period_end: after.period_end });
    if (event.type === 'payment.failed') await tellFailure(tx, after, event.eventId);
    else await tellChange(tx, before, after, event.eventId);
    return { kind: 'applied', accountId };
  });
}

async function accountOf(
  tx: Transaction<Tables>,
  { provider, checkoutId, reference, accountId }: BillingEvent,
): Promise<string | undefined> {
  if (checkoutId !== undefined) {
    const checkout = await tx
      .selectFrom('checkouts')
      .select('account_id')
      .where('id', '=', checkoutId)
      .where('provider', '=', provider)
      .executeTakeFirst();
    return checkout?.account_id;
  }
  if (reference === undefined) return accountId;
  const subscription = await tx
    .selectFrom('subscriptions')
    .select('account_id')
    .where('provider', '=', provider)
    .where('provider_reference', '=', reference)
    .executeTakeFirst();
  return subscription?.account_id ?? accountId;
}

type CheckoutEnded =
  | { readonly kind: 'ended'; readonly tier: Tier }
  | { readonly kind: 'void' }
  | { readonly kind: 'over' };

/** Paid is the last word, whichever came first: a card may be refused before another is not. */
async function endCheckout(
  tx: Transaction<Tables>,
  { type, checkoutId }: BillingEvent,
): Promise<CheckoutEnded> {
  const isPaid = type === 'checkout.paid';
  const checkout = await tx
    .selectFrom('checkouts')
    .select(['tier', 'status'])
    .where('id', '=', checkoutId!)
    .executeTakeFirstOrThrow();
  if (checkout.status === 'void') return { kind: 'void' };
  const mayEnd = checkout.status === 'open' || (isPaid && checkout.status === 'failed');
  if (!mayEnd) return { kind: 'over' };
  await tx
    .updateTable('checkouts')
    .set({ status: isPaid ? 'paid' : 'failed' })
    .where('id', '=', checkoutId!)
    .execute();
  return { kind: 'ended', tier: checkout.tier };
}

function bought({ event, accountId, reference, at }: Arrived, tier: Tier): SubscriptionRow {
  return {
    account_id: accountId,
    tier,
    status: 'active',
    past_due_since: null,
    period_end: paidUntil(event, at),
    cancel_at_period_end: false,
    provider: event.provider,
    provider_reference: reference,
    updated_at: at,
  };
}

/** @returns undefined when the event changes nothing of the present subscription */
function changed(
  before: SubscriptionRow,
  { event, reference, at }: Arrived,
  events: readonly SubscriptionEvent[],
): SubscriptionRow | undefined {
  const isOther = before.provider !== event.provider || reference !== before.provider_reference;
  // Only a checkout opens a subscription that has ended.
  if (isOther || before.status === 'ended') return undefined;
  if (event.type === 'payment.failed' && at.getTime() <= lastPaidMs(events)) return undefined;
  const isNewestTier = events.every((other) => other.tier === null || other.at <= at);
  return foldEvents(
    {
      ...before,
      tier: isPayment(event) && isNewestTier ? (event.tier ?? before.tier) : before.tier,
      updated_at: at > before.updated_at ? at : before.updated_at,
    },
    events,
  );
}

async function putSubscription(tx: Transaction<Tables>, row: SubscriptionRow): Promise<void> {
  await tx
    .insertInto('subscriptions')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(row))
    .execute();
}
