import {
  type AccountAccess,
  type Entitlement,
  PAST_DUE_GRACE_MS,
  type SubscriptionAccess,
} from './access.ts';
import { type Capability, TIERS, type Tier, tierThatHas } from './tiers.ts';

/**
 * The tier that an account has now: its subscription's, unless that ended, was cancelled to its
 * period's end, or is past due for more than 7 days. @param nowMs Unix ms
 */
export function tierOf(account: AccountAccess, nowMs: number): Tier | undefined {
  const verdict = standingOf(account, nowMs);
  return verdict.kind === 'granted' ? verdict.tier : undefined;
}

/** Whether an account may use a capability now. @param nowMs Unix ms */
export function entitlementOf(
  account: AccountAccess,
  capability: Capability,
  nowMs: number,
): Entitlement {
  const standing = standingOf(account, nowMs);
  if (standing.kind !== 'granted') return standing;
  if (TIERS[standing.tier].capabilities.includes(capability)) return standing;
  return { kind: 'tier_too_low', tier: standing.tier, needs: tierThatHas(capability) };
}

function standingOf(
  { status, subscription }: AccountAccess,
  nowMs: number,
): Exclude<Entitlement, { kind: 'tier_too_low' }> {
  if (status !== 'active') return { kind: 'account_suspended' };
  if (subscription === undefined) return { kind: 'subscription_required' };
  const standing = subscriptionStanding(subscription, nowMs);
  if (standing === 'over') return { kind: 'subscription_required' };
  if (standing === 'unpaid') return { kind: 'account_suspended' };
  return { kind: 'granted', tier: subscription.tier };
}

/** What a subscription is good for: `over` = ended or cancelled; `unpaid` = for over 7 days. */
export function subscriptionStanding(
  subscription: SubscriptionAccess,
  nowMs: number,
): 'in_force' | 'over' | 'unpaid' {
  const { status, cancelAtPeriodEnd, periodEndMs, pastDueSinceMs } = subscription;
  if (status === 'ended' || (cancelAtPeriodEnd && nowMs >= periodEndMs)) return 'over';
  const isUnpaid = pastDueSinceMs !== undefined && nowMs >= pastDueSinceMs + PAST_DUE_GRACE_MS;
  return isUnpaid ? 'unpaid' : 'in_force';
}

/**
 * When the tier ends, or ended, by the clock alone, without any change of its rows. undefined =
 * never, also when the subscription was ended by a change.
 */
export function tierEndsAtMs({
  subscription,
}: Pick<AccountAccess, 'subscription'>): number | undefined {
  if (subscription === undefined || subscription.status === 'ended') return undefined;
  const { cancelAtPeriodEnd, periodEndMs, pastDueSinceMs } = subscription;
  const ends = [
    ...(cancelAtPeriodEnd ? [periodEndMs] : []),
    ...(pastDueSinceMs === undefined ? [] : [pastDueSinceMs + PAST_DUE_GRACE_MS]),
  ];
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Why a tier does not have something, for people; the same words in every channel. */
export function tierTooLowText(
  { tier, needs }: { readonly tier: Tier; readonly needs: Tier },
  what = 'it',
): string {
  return `${TIERS[needs].title} has ${what}; the account has ${TIERS[tier].title}.`;
}
