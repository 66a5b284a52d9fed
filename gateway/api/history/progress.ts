import { setTimeout as sleep } from 'node:timers/promises';
import type { Offsets } from '../../../schemas/position.ts';
import { kept } from '../clickhouse/kept.ts';
import type { Select } from '../clickhouse/select.ts';
import { has, readStored, type Stored } from '../clickhouse/stored.ts';
import { HISTORY_LIMITS } from './limits.ts';

export interface Progress {
  /** At most 0.2 s old. @throws NoAnswer */
  now(): Promise<Stored>;
  /**
   * Waits, for 3 s at most, until the pills up to these offsets are there.
   * @returns how far it is, also when the wait was in vain; undefined: too many wait
   * @throws NoAnswer
   */
  reach(wanted: Offsets, accountId: string): Promise<Stored | undefined>;
}

/** Watches what the sink tells; asks only while somebody wants to know, one statement at a time. */
export function createProgress(select: Select, epoch: string): Progress {
  const now = kept(HISTORY_LIMITS.progressMaxAgeMs, () => readStored(select, epoch));
  const waitingOf = new Map<string, number>();
  let waiting = 0;

  return {
    now,
    async reach(wanted, accountId) {
      const deadline = performance.now() + HISTORY_LIMITS.behindWaitMs;
      let stored = await now();
      if (has(stored, wanted)) return stored;
      const { waitersMax, waitersOfAccountMax } = HISTORY_LIMITS;
      const own = () => waitingOf.get(accountId) ?? 0;
      if (waiting >= waitersMax || own() >= waitersOfAccountMax) return undefined;
      waiting += 1;
      waitingOf.set(accountId, own() + 1);
      try {
        while (!has(stored, wanted) && performance.now() < deadline) {
          await sleep(HISTORY_LIMITS.behindPollMs);
          stored = await now();
        }
        return stored;
      } finally {
        waiting -= 1;
        if (own() === 1) waitingOf.delete(accountId);
        else waitingOf.set(accountId, own() - 1);
      }
    },
  };
}
