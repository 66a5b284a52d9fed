import type { SubscriptionRow } from './account-row.ts';

/** An event of one subscription, as it is remembered. */
export interface RememberedEvent {
  readonly type: string;
  /** When it happened at the provider. */
  readonly at: Date;
  /** What a payment is good for; null for events that are no payment. */
  readonly period_end: Date | null;
}

/**
 * What follows for a subscription from all its events, in whatever order they came: paid until the
 * latest end that was paid for, past due since the first failure after the last payment, ended for
 * ever by an end. What happened after the end counts for nothing.
 * @param row as it was; what its owner changed stays
 */
export function foldEvents(
  row: SubscriptionRow,
  events: readonly RememberedEvent[],
): SubscriptionRow {
  const endedMs = Math.min(...timesOf(events, 'subscription.ended'));
  const counted = events.filter(({ at }) => at.getTime() <= endedMs);
  const paidUntil = counted.map(
    ({ period_end: end }) => end?.getTime() ?? Number.NEGATIVE_INFINITY,
  );
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

/** When a payment came last, Unix ms; -Infinity = never. */
export function lastPaidMs(events: readonly RememberedEvent[]): number {
  return Math.max(
    ...timesOf(events, 'payment.succeeded'),
    ...timesOf(events, 'checkout.paid'),
    Number.NEGATIVE_INFINITY,
  );
}

function timesOf(events: readonly RememberedEvent[], type: string): number[] {
  return events.filter((event) => event.type === type).map(({ at }) => at.getTime());
}
