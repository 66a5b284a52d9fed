import type { Transaction } from 'kysely';
import type { Tier } from '../access/tiers.ts';
import type { Tables } from '../postgres/tables.ts';
import type { RememberedEvent } from './billing-fold.ts';
import type { BillingEvent } from './billing-provider.ts';

/** What is paid for when the provider does not say until when. */
export const PERIOD_MS = 30 * 86_400_000;

/** Events of one subscription that are looked at, the newest; it has about one a month. */
const EVENTS_MAX = 1_000;

/** An event with what was found out about it. */
export interface Arrived {
  readonly event: BillingEvent;
  readonly accountId: string;
  /** The subscription it tells of. */
  readonly reference: string;
  readonly at: Date;
}

export interface SubscriptionEvent extends RememberedEvent {
  /** What was paid for; null = the tier it was. */
  readonly tier: Tier | null;
}

/** @returns false when it is remembered already; waits for one that is being written */
export async function remember(
  tx: Transaction<Tables>,
  { event, accountId, reference, at }: Arrived,
): Promise<boolean> {
  const written = await tx
    .insertInto('billing_events')
    .values({
      provider: event.provider,
      event_id: event.eventId,
      type: event.type,
      account_id: accountId,
      reference,
      at,
      tier: event.tier ?? null,
      period_end: isPayment(event) ? paidUntil(event, at) : null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('event_id')
    .executeTakeFirst();
  return written !== undefined;
}

/** What is remembered of the subscription that an event tells of, that event too. */
export async function eventsOf(
  tx: Transaction<Tables>,
  { event, accountId, reference }: Arrived,
): Promise<readonly SubscriptionEvent[]> {
  return tx
    .selectFrom('billing_events')
    .select(['type', 'at', 'tier', 'period_end'])
    .where('provider', '=', event.provider)
    .where('reference', '=', reference)
    .where('account_id', '=', accountId)
    .orderBy('at', 'desc')
    .limit(EVENTS_MAX)
    .execute();
}

export function isPayment({ type }: BillingEvent): boolean {
  return type === 'checkout.paid' || type === 'payment.succeeded';
}

/** Until when a payment is good. */
export function paidUntil({ periodEnd }: BillingEvent, at: Date): Date {
  return periodEnd ?? new Date(at.getTime() + PERIOD_MS);
}
