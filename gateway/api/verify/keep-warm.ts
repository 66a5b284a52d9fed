import { setTimeout as sleep } from 'node:timers/promises';
import type { LatestView } from '../view.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { Weigher } from './weigher.ts';

export interface WarmPlace {
  readonly weigher: Pick<Weigher, 'warm'>;
  readonly view: Pick<LatestView, 'rows'>;
  /** Between rounds. */
  readonly againMs: number;
}

/**
 * Reads the older pills of all symbols, one after another, so that the first who asks need not
 * wait; again for those that have come, or failed, meanwhile. One that fails keeps no other
 * waiting; after several failures a round ends, since ClickHouse may be away, and the next one
 * begins with those that were not tried.
 */
export async function keepWarm(place: WarmPlace, signal: AbortSignal): Promise<void> {
  const { weigher, view, againMs } = place;
  const warmed = new Set<string>();
  /** Those that failed last, in this order. */
  const failed = new Set<string>();
  while (!signal.aborted) {
    const seen = [...view.rows()].map(({ pill }) => pill.symbol);
    const untried = seen.filter((symbol) => !warmed.has(symbol) && !failed.has(symbol));
    let failures = 0;
    for (const symbol of [...untried, ...failed]) {
      if (warmed.size >= VERIFY_LIMITS.windowsMax || signal.aborted) return;
      failed.delete(symbol);
      if (await weigher.warm(symbol)) {
        warmed.add(symbol);
        continue;
      }
      failed.add(symbol);
      failures += 1;
      if (failures >= VERIFY_LIMITS.warmFailuresMax) break;
    }
    await sleep(againMs, undefined, { signal }).catch(() => undefined);
  }
}
