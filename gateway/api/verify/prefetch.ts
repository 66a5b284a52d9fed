import { setTimeout as sleep } from 'node:timers/promises';
import type { LatestView } from '../pills/latest-view.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { FillWindow } from './window-filler.ts';

/**
 * Fills the windows of all symbols, one after another, so that the first request for a symbol need
 * not wait. Repeats for symbols that are new or have failed. One failing symbol does not hold up the
 * others; after several failures the round ends, since ClickHouse may be down, and the next round
 * begins with the symbols not tried yet.
 */
export async function prefetchWindows(
  deps: {
    readonly fillWindow: FillWindow;
    readonly view: Pick<LatestView, 'rows'>;
    /** Pause between rounds. */
    readonly pauseMs: number;
  },
  signal: AbortSignal,
): Promise<void> {
  const { fillWindow, view, pauseMs } = deps;
  const filled = new Set<string>();
  /** Symbols whose last attempt failed, longest ago first. */
  const failed = new Set<string>();
  while (!signal.aborted) {
    const seen = [...view.rows()].map(({ pill }) => pill.symbol);
    const untried = seen.filter((symbol) => !filled.has(symbol) && !failed.has(symbol));
    let failures = 0;
    for (const symbol of [...untried, ...failed]) {
      if (filled.size >= VERIFY_LIMITS.windowsMax || signal.aborted) return;
      failed.delete(symbol);
      if (await fillWindow(symbol)) {
        filled.add(symbol);
        continue;
      }
      failed.add(symbol);
      failures += 1;
      if (failures >= VERIFY_LIMITS.prefetchFailuresMax) break;
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}
