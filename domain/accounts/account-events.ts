import type { Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { PAST_DUE_GRACE_MS } from '../access/account-access.ts';
import type { SubscriptionRow } from './account-row.ts';

/** Raises `subscription.changed`, unless only payment times have changed. */
export async function raiseSubscriptionChanged(
  tx: Transaction<Tables>,
  before: SubscriptionRow | undefined,
  after: SubscriptionRow,
  occurrence: string,
): Promise<void> {
  if (isSameSubscription(before, after)) return;
  await raise(tx, after.account_id, 'subscription.changed', occurrence, {
    tier: after.tier,
    status: after.status,
    previous_tier: before?.tier ?? null,
    previous_status: before?.status ?? null,
    period_end: after.period_end,
    cancel_at_period_end: after.cancel_at_period_end,
    next_tier: after.next_tier,
  });
}

/** Whether two states of a subscription differ in payment times at most. */
export function isSameSubscription(
  before: SubscriptionRow | undefined,
  after: SubscriptionRow,
): boolean {
  return (
    before?.tier === after.tier &&
    before.status === after.status &&
    before.next_tier === after.next_tier &&
    before.cancel_at_period_end === after.cancel_at_period_end
  );
}

/** Raises `payment.failed` with the remaining days of access. */
export function raisePaymentFailed(
  tx: Transaction<Tables>,
  after: SubscriptionRow,
  occurrence: string,
): Promise<void> {
  const endsAt = new Date((after.past_due_since?.getTime() ?? 0) + PAST_DUE_GRACE_MS);
  return raise(tx, after.account_id, 'payment.failed', occurrence, {
    tier: after.tier,
    past_due_since: after.past_due_since,
    access_ends_at: endsAt,
    days_left: Math.max(0, Math.ceil((endsAt.getTime() - Date.now()) / 86_400_000)),
  });
}

/** Raises an event, once per occurrence. */
export async function raise(
  tx: Database | Transaction<Tables>,
  accountId: string,
  type: string,
  occurrence: string,
  data: object,
): Promise<void> {
  await tx
    .insertInto('account_events')
    .values({
      account_id: accountId,
      type,
      dedupe: `${type}/${occurrence}`,
      data: JSON.stringify(data),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
