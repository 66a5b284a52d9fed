import type {
  AccountAccess,
  DeskAccess,
  LimitOwner,
} from '../../../domain/access/account-access.ts';
import { tierOf } from '../../../domain/access/entitlement.ts';
import { networkOf } from '../../../domain/access/network-of.ts';
import { TIERS } from '../../../domain/access/tiers.ts';
import { createTokenBuckets } from '../../../domain/access/token-buckets.ts';
import type { Refusal } from '../../http/problems.ts';
import { UNMETERED_OF_ACCOUNT, UNMETERED_OF_NETWORK } from '../limits.ts';

/**
 * Creates the rate limits of calls that no quota counts, for this process only. They are
 * independent of the burst limit of metered calls.
 */
export function createUnmeteredLimits() {
  const accounts = createTokenBuckets();
  const networks = createTokenBuckets();
  return {
    /** Counts a call of an account and of its desk. @returns the refusal if the call exceeds the limit */
    ofAccount(account: AccountAccess, desk?: DeskAccess): Refusal | undefined {
      if (desk?.rate !== undefined) {
        // The desk first: what it has no room for takes nothing from the account.
        const { perS, burst } = desk.rate;
        const refusal = overLimit('desk', accounts.take(desk.id, perS, burst, performance.now()));
        if (refusal !== undefined) return refusal;
      }
      const tier = tierOf(account, Date.now());
      const plan = tier === undefined ? undefined : TIERS[tier];
      // At least the rate that the plan allows for metered calls.
      const ratePerS = account.ratePerS ?? plan?.ratePerS ?? 0;
      const burst = account.rateBurst ?? plan?.rateBurst ?? 0;
      const verdict = accounts.take(
        account.id,
        Math.max(ratePerS, UNMETERED_OF_ACCOUNT.ratePerS),
        Math.max(burst, UNMETERED_OF_ACCOUNT.burst),
        performance.now(),
      );
      return overLimit('account', verdict);
    },
    /** Counts a call from an address, before its credential is looked up; IPv6 by /64. */
    ofAddress(address: string): Refusal | undefined {
      const { ratePerS, burst } = UNMETERED_OF_NETWORK;
      const verdict = networks.take(networkOf(address), ratePerS, burst, performance.now());
      return overLimit('address', verdict);
    },
  };
}

interface RateVerdict {
  readonly limit: number;
  readonly windowS: number;
  readonly retryAfterS: number;
}

function overLimit(scope: LimitOwner | 'address', verdict: RateVerdict): Refusal | undefined {
  return verdict.retryAfterS === 0 ? undefined : rateRefusal('unmetered', scope, verdict);
}

/** The refusal of a call that comes too soon after others. */
export function rateRefusal(
  policy: 'unmetered' | 'burst',
  scope: LimitOwner | 'address',
  { limit, windowS: window_s, retryAfterS: retry_after_s }: RateVerdict,
): Refusal {
  const members = { 'violated-policies': [policy], scope, limit, window_s, retry_after_s };
  return ['rate_limited', members];
}
