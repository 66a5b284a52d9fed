import type { Transaction } from 'kysely';
import { PAST_DUE_GRACE_MS } from '../access/access.ts';
import type { Tables } from '../postgres/tables.ts';
import type { SubscriptionRow } from './account-row.ts';

/** Raises `subscription.changed`, unless only the time of payment has changed. */
export async function tellChange(
  tx: Transaction<Tables>,
  before: SubscriptionRow | undefined,
  after: SubscriptionRow,
  occurrence: string,
): Promise<void> {
  const same =
    before?.tier === after.tier &&
    before.status === after.status &&
    before.cancel_at_period_end === after.cancel_at_period_end;
  if (same) return;
  await raise(tx, after.account_id, 'subscription.changed', occurrence, {
    tier: after.tier,
    status: after.status,
    previous_tier: before?.tier ?? null,
    previous_status: before?.status ?? null,
    period_end: after.period_end,
    cancel_at_period_end: after.cancel_at_period_end,
  });
}

/** Raises `payment.failed` with the days of access that are left. */
export function tellFailure(
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

async function raise(
  tx: Transaction<Tables>,
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
      mailed_at: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
