import type { Log } from '../log.ts';
import { openDatabase } from '../postgres/database.ts';
import type { AccountAccess, Meter } from './access.ts';
import { createBursts } from './burst.ts';
import { openLedger } from './ledger.ts';
import { openStatements } from './statement.ts';
import { TIERS, type TierPlan } from './tiers.ts';
import { createUsageCalls } from './usage-calls.ts';

export interface MeterOptions {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly log: Log;
  /** Names its connections in pg_stat_activity. */
  readonly name: string;
}

/**
 * Opens a meter: burst limits of this process, and daily limits that hold over all processes. It
 * connects in the background; until then, and while PostgreSQL is away, calls of accounts with a
 * daily limit are `unavailable`, and those of accounts without one are counted later.
 *
 * `peek` tells what this process was told last: of an account it has not met (or not within the
 * last second) it asks in the background, and until the answer the whole limit counts as left.
 */
export function openMeter({ databaseUrl, namespace, log, name }: MeterOptions): Meter {
  const open = (part: string) =>
    openStatements(() =>
      openDatabase({
        url: databaseUrl,
        namespace,
        name: `${name}-${part}`,
        log,
        connectionsMax: 1,
        lazyCommits: true,
      }),
    );
  const usage = createUsageCalls(open('usage'), log);
  const ledger = openLedger(open('ledger'), usage, log);
  const bursts = createBursts();

  return {
    take(call) {
      const { account } = call;
      const plan = planOf(account);
      const nowMs = performance.now();
      const burst = bursts.take(
        account.id,
        account.ratePerS ?? plan.ratePerS,
        account.rateBurst ?? plan.rateBurst,
        nowMs,
      );
      if (burst.retryAfterS > 0) {
        return { kind: 'rate_limited', burst, retryAfterS: burst.retryAfterS };
      }
      const limit = dailyLimitOf(account, plan);
      if (limit !== undefined) return ledger.take(call, limit, burst, nowMs);
      ledger.count(call, 1);
      return { kind: 'granted', burst, daily: undefined };
    },
    giveBack(call) {
      ledger.count(call, -1);
    },
    peek(account) {
      const plan = planOf(account);
      const nowMs = performance.now();
      const limit = dailyLimitOf(account, plan);
      return {
        burst: bursts.peek(
          account.id,
          account.ratePerS ?? plan.ratePerS,
          account.rateBurst ?? plan.rateBurst,
          nowMs,
        ),
        daily: limit === undefined ? undefined : ledger.peek(account.id, limit, nowMs),
      };
    },
    async close() {
      await ledger.close();
      await usage.close();
    },
  };
}

/** Without a subscription (only looked at, never taken from): the lowest. */
function planOf({ subscription }: AccountAccess): TierPlan {
  return TIERS[subscription?.tier ?? 'basic'];
}

function dailyLimitOf(account: AccountAccess, plan: TierPlan): number | undefined {
  return account.callsPerDay ?? plan.callsPerDay ?? undefined;
}
