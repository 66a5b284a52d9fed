import { type AccountAccess, type Entitlement, PAST_DUE_GRACE_MS } from './access.ts';
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
  if (subscription === undefined || subscription.status === 'ended') {
    return { kind: 'subscription_required' };
  }
  if (subscription.cancelAtPeriodEnd && nowMs >= subscription.periodEndMs) {
    return { kind: 'subscription_required' };
  }
  const { pastDueSinceMs } = subscription;
  if (pastDueSinceMs !== undefined && nowMs >= pastDueSinceMs + PAST_DUE_GRACE_MS) {
    return { kind: 'account_suspended' };
  }
  return { kind: 'granted', tier: subscription.tier };
}

/** When the tier ends by the clock alone, without any change of its rows; undefined = never. */
export function tierEndsAtMs({ subscription }: AccountAccess): number | undefined {
  const ends = [
    subscription?.cancelAtPeriodEnd === true ? subscription.periodEndMs : undefined,
    subscription?.pastDueSinceMs === undefined
      ? undefined
      : subscription.pastDueSinceMs + PAST_DUE_GRACE_MS,
  ].filter((end) => end !== undefined);
  return ends.length === 0 ? undefined : Math.min(...ends);
}
