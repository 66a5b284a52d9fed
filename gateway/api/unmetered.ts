import type { AccountAccess } from '../../lib/access/access.ts';
import { createBursts } from '../../lib/access/burst.ts';
import { tierOf } from '../../lib/access/entitlement.ts';
import { TIERS } from '../../lib/access/tiers.ts';
import { networkOf } from '../../lib/accounts/attempts.ts';
import type { ProblemCode } from '../http/problem-catalogue.ts';
import type { ProblemMembers } from '../http/problems.ts';
import { UNMETERED_OF_ACCOUNT, UNMETERED_OF_NETWORK } from './limits.ts';

/** Calls that cost nothing and are no open flood all the same; in this process alone. */
export interface UnmeteredLimits {
  /** Counts a call of an account. @returns what to answer instead of going on */
  ofAccount(account: AccountAccess): Refusal | undefined;
  /** Counts a call from an address, before anybody is looked up for it; IPv6 by /64. */
  ofAddress(address: string): Refusal | undefined;
}

type Refusal = readonly [ProblemCode, ProblemMembers];

/** Both are apart from the burst limit of metered calls: neither takes from the other. */
export function createUnmeteredLimits(): UnmeteredLimits {
  const accounts = createBursts();
  const networks = createBursts();
  return {
    ofAccount(account) {
      const tier = tierOf(account, Date.now());
      const plan = tier === undefined ? undefined : TIERS[tier];
      // At least what the plan allows of calls that do count.
      const ratePerS = account.ratePerS ?? plan?.ratePerS ?? 0;
      const burst = account.rateBurst ?? plan?.rateBurst ?? 0;
      const verdict = accounts.take(
        account.id,
        Math.max(ratePerS, UNMETERED_OF_ACCOUNT.ratePerS),
        Math.max(burst, UNMETERED_OF_ACCOUNT.burst),
        performance.now(),
      );
      return refusalOf('account', verdict);
    },
    ofAddress(address) {
      const { ratePerS, burst } = UNMETERED_OF_NETWORK;
      const verdict = networks.take(networkOf(address), ratePerS, burst, performance.now());
      return refusalOf('address', verdict);
    },
  };
}

function refusalOf(
  scope: 'account' | 'address',
  verdict: { readonly limit: number; readonly windowS: number; readonly retryAfterS: number },
): Refusal | undefined {
  if (verdict.retryAfterS === 0) return undefined;
  return [
    'rate_limited',
    {
      'violated-policies': ['unmetered'],
      scope,
      limit: verdict.limit,
      window_s: verdict.windowS,
      retry_after_s: verdict.retryAfterS,
    },
  ];
}
