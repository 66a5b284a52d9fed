import { setTimeout as sleep } from 'node:timers/promises';
import type { Offsets } from '../../../schemas/position.ts';
import { cachedFor } from '../clickhouse/cached-for.ts';
import type { Select } from '../clickhouse/select.ts';
import { covers, readTableCoverage, type TableCoverage } from '../clickhouse/table-coverage.ts';
import { HISTORY_LIMITS } from './limits.ts';

export type CoverageWatcher = ReturnType<typeof createCoverageWatcher>;

/** Watches the table's coverage; queries only while a request needs it, one statement at a time. */
export function createCoverageWatcher(select: Select, epoch: string) {
  const now = cachedFor(HISTORY_LIMITS.coverageMaxAgeMs, () => readTableCoverage(select, epoch));
  const waitingOf = new Map<string, number>();
  let waiting = 0;

  return {
    /** At most 0.2 s old. @throws QueryError */
    now,
    /**
     * Waits, for 3 s at most, until the table holds the pills up to these offsets.
     * @returns the coverage, also after a timeout; undefined if too many requests wait
     * @throws QueryError
     */
    async reach(required: Offsets, accountId: string): Promise<TableCoverage | undefined> {
      const deadline = performance.now() + HISTORY_LIMITS.behindWaitMs;
      let coverage = await now();
      if (covers(coverage, required)) return coverage;
      const { waitersMax, waitersOfAccountMax } = HISTORY_LIMITS;
      const own = () => waitingOf.get(accountId) ?? 0;
      if (waiting >= waitersMax || own() >= waitersOfAccountMax) return undefined;
      waiting += 1;
      waitingOf.set(accountId, own() + 1);
      try {
        while (!covers(coverage, required) && performance.now() < deadline) {
          await sleep(HISTORY_LIMITS.behindPollMs);
          coverage = await now();
        }
        return coverage;
      } finally {
        waiting -= 1;
        if (own() === 1) waitingOf.delete(accountId);
        else waitingOf.set(accountId, own() - 1);
      }
    },
  };
}
