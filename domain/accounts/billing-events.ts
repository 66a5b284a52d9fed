import type { Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { BillingEvent } from './billing-provider.ts';

/** Length of a paid period if the provider does not state its end. */
export const PERIOD_MS = 30 * 86_400_000;

/** The newest events of a subscription that are considered; there is about one a month. */
const EVENTS_MAX = 1_000;

/** An event with its account and subscription. */
export interface ReceivedEvent {
  readonly event: BillingEvent;
  readonly accountId: string;
  /** The provider's id of the subscription. */
  readonly reference: string;
  readonly at: Date;
}

export type SubscriptionEvent = Awaited<ReturnType<typeof readEvents>>[number];

/** @returns false if the event is stored already; waits for a concurrent write of the same event */
export async function storeEvent(
  tx: Transaction<Tables>,
  { event, accountId, reference, at }: ReceivedEvent,
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

/**
 * Reads the stored events of an event's subscription, including the event itself. `tier` is the tier that
 * was paid for; null = the present tier.
 */
export function readEvents(
  tx: Transaction<Tables>,
  { event, accountId, reference }: ReceivedEvent,
) {
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

/** End of the period that a payment covers. */
export function paidUntil({ periodEnd }: BillingEvent, at: Date): Date {
  return periodEnd ?? new Date(at.getTime() + PERIOD_MS);
}
