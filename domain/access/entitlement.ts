import {
  type AccountAccess,
  type Entitlement,
  PAST_DUE_GRACE_MS,
  type SubscriptionAccess,
} from './account-access.ts';
import type { Role } from './roles.ts';
import { type Capability, TIERS, type Tier, tierThatHas } from './tiers.ts';

/**
 * The tier that an account has now: the tier of its subscription, or the lower one that follows its
 * period, unless the subscription has ended, was cancelled and its period is over, or is past due for
 * more than 7 days. @param nowMs Unix ms
 */
export function tierOf(account: AccountAccess, nowMs: number): Tier | undefined {
  const verdict = accountEntitlement(account, nowMs);
  return verdict.kind === 'granted' ? verdict.tier : undefined;
}

/** Whether an account may use a capability now. @param nowMs Unix ms */
export function entitlementOf(
  account: AccountAccess,
  capability: Capability,
  nowMs: number,
): Entitlement {
  const entitlement = accountEntitlement(account, nowMs);
  if (entitlement.kind !== 'granted') return entitlement;
  const { tier } = entitlement;
  if (TIERS[tier].capabilities.includes(capability)) return entitlement;
  return { kind: 'tier_too_low', tier, needs: tierThatHas(capability) };
}

/** The tier that an account has now or would have if it were not suspended: its support's priority. */
export function boughtTierOf(
  { subscription }: Pick<AccountAccess, 'subscription'>,
  nowMs: number,
): Tier | undefined {
  if (subscription === undefined || subscriptionState(subscription, nowMs) === 'over') {
    return undefined;
  }
  return tierAt(subscription, nowMs);
}

/**
 * Whether a member may act for the account now. Members besides owners need a tier with the API
 * manager, also one that is suspended or unpaid: somebody must be able to pay. After a downgrade they
 * lose access, and nothing is deleted.
 */
export function isMemberActive(
  account: Pick<AccountAccess, 'subscription'>,
  role: Role,
  nowMs: number,
): boolean {
  if (role === 'owner') return true;
  const tier = boughtTierOf(account, nowMs);
  return tier !== undefined && TIERS[tier].capabilities.includes('api_manager');
}

/** Whether an account has any tier now. @param nowMs Unix ms */
export function accountEntitlement(
  { status, subscription }: AccountAccess,
  nowMs: number,
): Exclude<Entitlement, { kind: 'tier_too_low' }> {
  if (status !== 'active') return { kind: 'account_suspended' };
  if (subscription === undefined) return { kind: 'subscription_required' };
  const state = subscriptionState(subscription, nowMs);
  if (state === 'over') return { kind: 'subscription_required' };
  if (state === 'unpaid') return { kind: 'account_suspended' };
  return { kind: 'granted', tier: tierAt(subscription, nowMs) };
}

/** The tier of a subscription by the clock alone: a downgrade takes effect at the period's end. */
export function tierAt(
  { tier, nextTier, periodEndMs }: Pick<SubscriptionAccess, 'tier' | 'nextTier' | 'periodEndMs'>,
  nowMs: number,
): Tier {
  return nextTier !== undefined && nowMs >= periodEndMs ? nextTier : tier;
}

/** The state of a subscription: `over` = ended or cancelled; `unpaid` = for more than 7 days. */
export function subscriptionState(
  subscription: SubscriptionAccess,
  nowMs: number,
): 'in_force' | 'over' | 'unpaid' {
  const { status, cancelAtPeriodEnd, periodEndMs, pastDueSinceMs } = subscription;
  if (status === 'ended' || (cancelAtPeriodEnd && nowMs >= periodEndMs)) return 'over';
  const isUnpaid = pastDueSinceMs !== undefined && nowMs >= pastDueSinceMs + PAST_DUE_GRACE_MS;
  return isUnpaid ? 'unpaid' : 'in_force';
}

/**
 * When the tier ends or ended by the clock alone, without a change of its rows; undefined = never,
 * also when a change ended the subscription.
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

/** When the clock alone changes the tier next, or ends it or has ended it; undefined = never. */
export function tierChangesAtMs(
  account: Pick<AccountAccess, 'subscription'>,
  nowMs: number,
): number | undefined {
  const { subscription } = account;
  const endsAtMs = tierEndsAtMs(account);
  if (subscription?.nextTier === undefined || nowMs >= subscription.periodEndMs) return endsAtMs;
  return Math.min(subscription.periodEndMs, endsAtMs ?? subscription.periodEndMs);
}

/** Says for people why a tier lacks a capability, in the same words on every channel. */
export function tierTooLowText(
  { tier, needs }: { readonly tier: Tier; readonly needs: Tier },
  what = 'this call',
): string {
  return `${TIERS[needs].title} is required for ${what}; the account has ${TIERS[tier].title}.`;
}
