import type { Log } from '../../lib/log/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import type {
  AccountAccess,
  Allowance,
  DeskAccess,
  MeteredCall,
  MeterVerdict,
} from './account-access.ts';
import { tierAt } from './entitlement.ts';
import { QuotaCounter } from './quota-counter.ts';
import { openStatements } from './statements.ts';
import { TIERS, type TierPlan } from './tiers.ts';
import { createTokenBuckets } from './token-buckets.ts';
import { createUsageWriter } from './usage-writer.ts';

export type Meter = ReturnType<typeof openMeter>;

/**
 * Opens a meter: burst limits of this process, and exact daily limits over all processes. It connects in
 * the background; until then, and while PostgreSQL is unavailable, calls of accounts with a daily
 * limit are `unavailable`, and calls of accounts without one are counted later.
 * @param options `name` names its connections in pg_stat_activity; `deadlineMs` bounds the wait of a
 *   call for its count, by default 1 s
 */
interface PeekedLimits {
  readonly burst: Allowance;
  readonly daily: Allowance | undefined;
}

export function openMeter(options: {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly log: Log;
  readonly name: string;
  readonly deadlineMs?: number;
}) {
  const { databaseUrl: url, namespace, log } = options;
  const open = (part: string) => {
    const name = `${options.name}-${part}`;
    return openStatements(() =>
      openDatabase({ url, namespace, name, log, connectionsMax: 1, lazyCommits: true }),
    );
  };
  const usage = createUsageWriter(open('usage'), log);
  const quotas = new QuotaCounter(open('quotas'), usage, log, options.deadlineMs);
  const buckets = createTokenBuckets();

  return {
    /** Counts one call of an account that has a tier, and of its desk. Synchronous without a daily limit. */
    take(call: MeteredCall): MeterVerdict | Promise<MeterVerdict> {
      const { account, desk } = call;
      const plan = planOf(account);
      const nowMs = performance.now();
      // The desk first: what it has no room for takes nothing from the account.
      const ofDesk = desk?.rate && buckets.take(desk.id, desk.rate.perS, desk.rate.burst, nowMs);
      if (ofDesk !== undefined && ofDesk.retryAfterS > 0) {
        const { retryAfterS } = ofDesk;
        return { kind: 'rate_limited', of: 'desk', burst: ofDesk, retryAfterS };
      }
      const ofAccount = buckets.take(account.id, ...rateOf(account, plan), nowMs);
      if (ofAccount.retryAfterS > 0) {
        const { retryAfterS } = ofAccount;
        return { kind: 'rate_limited', of: 'account', burst: ofAccount, retryAfterS };
      }
      const burst = tighter(ofAccount, ofDesk);
      const limit = dailyLimitOf(account, plan);
      if (limit !== undefined || desk?.callsPerDay !== undefined) {
        return quotas.take(call, limit, burst, nowMs);
      }
      quotas.count(call, 1);
      return { kind: 'granted', burst, daily: undefined };
    },
    /** Gives a call back after a 5xx of this server; best effort. */
    giveBack: (call: MeteredCall) => quotas.count(call, -1),
    /**
     * The limits as last reported to this process, without counting a call: for answers that are
     * free. A count that is older than a second or missing is refreshed in the background; until
     * the answer a missing count is the whole limit.
     */
    peek(account: AccountAccess, desk?: DeskAccess): PeekedLimits {
      const plan = planOf(account);
      const nowMs = performance.now();
      const limit = dailyLimitOf(account, plan);
      const ofAccount = buckets.peek(account.id, ...rateOf(account, plan), nowMs);
      const ofDesk = desk?.rate && buckets.peek(desk.id, desk.rate.perS, desk.rate.burst, nowMs);
      return {
        burst: tighter(ofAccount, ofDesk),
        daily: quotas.peek(account.id, limit, desk, nowMs),
      };
    },
    async close(): Promise<void> {
      await quotas.close();
      await usage.close();
    },
  };
}

/** Of the limits of an account and of its desk, the one that a call reaches first. */
function tighter(ofAccount: Allowance, ofDesk: Allowance | undefined): Allowance {
  return ofDesk !== undefined && ofDesk.remaining <= ofAccount.remaining ? ofDesk : ofAccount;
}

/** Without a subscription (limits are only shown, no call is counted): the lowest plan. */
function planOf({ subscription }: AccountAccess): TierPlan {
  return TIERS[subscription === undefined ? 'basic' : tierAt(subscription, Date.now())];
}

function rateOf(account: AccountAccess, plan: TierPlan): [perS: number, burst: number] {
  return [account.ratePerS ?? plan.ratePerS, account.rateBurst ?? plan.rateBurst];
}

function dailyLimitOf(account: AccountAccess, plan: TierPlan): number | undefined {
  return account.callsPerDay ?? plan.callsPerDay ?? undefined;
}
