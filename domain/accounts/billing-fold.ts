import type { SubscriptionRow } from './account-row.ts';

/** A stored event of a subscription. */
export interface StoredEvent {
  readonly type: string;
  /** When it happened at the provider. */
  readonly at: Date;
  /** End of the period that a payment covers; null for other events. */
  readonly period_end: Date | null;
}

/**
 * Derives a subscription from all its events, in any order of arrival: paid until the latest
 * period end since the newest checkout (an upgrade credits and replaces the periods before it), past due since the first failure after the last payment, ended for good by an end.
 * Events after the end are ignored.
 * @param row the subscription before; the owner's changes stay
 */
export function foldEvents(row: SubscriptionRow, events: readonly StoredEvent[]): SubscriptionRow {
  const endedMs = Math.min(...timesOf(events, 'subscription.ended'));
  const counted = events.filter(({ at }) => at.getTime() <= endedMs);
  const checkoutMs = Math.max(...timesOf(counted, 'checkout.paid'));
  const paidUntil = counted
    .filter(({ at }) => at.getTime() >= checkoutMs)
    .map(({ period_end: end }) => end?.getTime() ?? Number.NEGATIVE_INFINITY);
  const periodEnd = new Date(Math.max(row.period_end.getTime(), ...paidUntil));
  if (row.status === 'ended' || Number.isFinite(endedMs)) {
    return { ...row, status: 'ended', past_due_since: null, period_end: periodEnd };
  }
  const paidMs = lastPaidMs(counted);
  const failures = timesOf(counted, 'payment.failed');
  if (row.past_due_since !== null) failures.push(row.past_due_since.getTime());
  const sinceMs = Math.min(...failures.filter((ms) => ms > paidMs));
  const isPastDue = Number.isFinite(sinceMs);
  return {
    ...row,
    status: isPastDue ? 'past_due' : 'active',
    past_due_since: isPastDue ? new Date(sinceMs) : null,
    period_end: periodEnd,
  };
}

/** Time of the last payment, Unix ms; -Infinity = never. */
export function lastPaidMs(events: readonly StoredEvent[]): number {
  return Math.max(
    ...timesOf(events, 'payment.succeeded'),
    ...timesOf(events, 'checkout.paid'),
    Number.NEGATIVE_INFINITY,
  );
}

function timesOf(events: readonly StoredEvent[], type: string): number[] {
  return events.filter((event) => event.type === type).map(({ at }) => at.getTime());
}
