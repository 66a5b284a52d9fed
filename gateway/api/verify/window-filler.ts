import { LRUCache } from 'lru-cache';
import { VERIFY_LIMITS } from './limits.ts';
import type { LogCache } from './log-cache.ts';
import type { PillStore } from './stored-pills.ts';

/** Reads the older pills that a symbol's window lacks. @returns whether it is complete now */
export type FillWindow = (symbol: string) => Promise<boolean>;

/** One read per symbol at a time; after a failure none for `fillRetryMs`. Never rejects. */
export function createWindowFiller(
  { windowOf, partitionOf }: Pick<LogCache, 'windowOf' | 'partitionOf'>,
  store: Pick<PillStore, 'older'>,
): FillWindow {
  const failures = new LRUCache<string, 'failed'>({
    max: VERIFY_LIMITS.windowsMax,
    ttl: VERIFY_LIMITS.fillRetryMs,
    // A read continues even if its cache entry is evicted.
    ignoreFetchAbort: true,
    async fetchMethod(symbol) {
      const window = windowOf(symbol);
      const { from, count } = window;
      const missing = VERIFY_LIMITS.windowPills - count;
      try {
        window.fill(await store.older(symbol, partitionOf(symbol), from, missing));
        return undefined;
      } catch {
        // The failure was logged where it happened; the verdict reports it.
        return 'failed';
      }
    },
  });
  return async (symbol) => windowOf(symbol).isWhole || (await failures.fetch(symbol)) === undefined;
}
