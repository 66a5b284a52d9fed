import { setTimeout as sleep } from 'node:timers/promises';
import type { LatestRow } from '../../../lib/latest-table.ts';
import { lateAfterMs } from '../../../lib/signal/cadence.ts';
import { generatorState } from '../../../lib/signal/generator.ts';
import type { Markets } from '../../../lib/signal/markets.ts';
import { judgeSilence } from '../../../lib/signal/silence.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { LatestView } from '../view.ts';
import type { Hearing } from './hearing.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { LogMemory } from './log-memory.ts';
import { marketFacts } from './market.ts';
import type { Reason } from './reasons.ts';
import { spreadFigures } from './spread.ts';
import type { Store } from './store.ts';
import { type Facts, type Judgement, judge, type WeighedPill } from './verdict.ts';
import type { SymbolWindow } from './window.ts';

/** Facts and what follows from them. */
export interface Weighed {
  readonly facts: Facts;
  readonly judgement: Judgement;
}

/** Gathers what is known of a symbol, and weighs a pill of it. */
export interface Weigher {
  /**
   * Weighs the newest pill of a symbol, or another one of it. Quick: it waits, for a quarter of a
   * second at most, only where a symbol has too few pills in memory.
   * @param faults what is known to be missing beside what is found here
   */
  weigh(symbol: string, pill?: WeighedPill, faults?: readonly Reason[]): Promise<Weighed>;
  /** Nothing to weigh: a pill that was looked for in vain. */
  weighNothing(symbol: string, faults: readonly Reason[]): Weighed;
  /** What is away of what this process needs to know of all symbols. */
  faults(): readonly Reason[];
  /** Reads a symbol's older pills, if some are missing. @returns whether none is */
  warm(symbol: string): Promise<boolean>;
}

export interface WeigherOptions {
  readonly view: Pick<LatestView, 'get' | 'processed'>;
  readonly memory: LogMemory;
  readonly store: Store;
  readonly markets: Markets;
  readonly hearing: Hearing;
  readonly nowMicros: () => Micros;
}

export function createWeigher(options: WeigherOptions): Weigher {
  const { view, memory, store, markets, hearing, nowMicros } = options;
  const filling = new Map<string, Promise<boolean>>();
  /** When a fill was in vain; of few symbols at a time, since others are asked for anew. */
  const inVain = new Map<string, number>();

  const fill = async (symbol: string, window: SymbolWindow): Promise<boolean> => {
    const { from, count } = window;
    const missing = VERIFY_LIMITS.windowPills - count;
    try {
      const older = await store.older(symbol, memory.partitionOf(symbol), from, missing);
      window.fill(older);
      inVain.delete(symbol);
      return true;
    } catch {
      // It is logged where it failed; the verdict tells it.
      if (inVain.size >= VERIFY_LIMITS.windowsMax) inVain.clear();
      inVain.set(symbol, performance.now());
      return false;
    }
  };
  const warm = (symbol: string): Promise<boolean> => {
    const window = memory.windowOf(symbol);
    if (window.isWhole) return Promise.resolve(true);
    const vainAt = inVain.get(symbol) ?? Number.NEGATIVE_INFINITY;
    const known = filling.get(symbol);
    if (known !== undefined) return known;
    if (performance.now() - vainAt < VERIFY_LIMITS.fillAgainMs) return Promise.resolve(false);
    const begun = fill(symbol, window).finally(() => filling.delete(symbol));
    filling.set(symbol, begun);
    return begun;
  };

  /** What is away of all that a verdict rests on. */
  const partFaults = (partitions: Iterable<number>, nowMs: number): Reason[] => {
    const away = hearing.fault();
    if (away !== undefined) return [away];
    let waitedMs = 0;
    for (const partition of partitions) {
      const processed = view.processed().get(partition) ?? -1;
      waitedMs = Math.max(waitedMs, memory.waitingMs(partition, processed, nowMs));
    }
    if (waitedMs <= VERIFY_LIMITS.lagMaxMs) return [];
    const detail = `${(waitedMs / 1000).toFixed(1)} s behind, limit ${VERIFY_LIMITS.lagMaxMs / 1000} s`;
    return [{ code: 'view_behind', detail }];
  };

  const gather = (
    symbol: string,
    pill: WeighedPill | undefined,
    row: LatestRow | undefined,
    faults: readonly Reason[],
  ): Facts => {
    const now = nowMicros();
    const nowMs = now / 1000;
    const market = marketFacts(markets, symbol, nowMs, pill && pill.timestamp / 1000);
    const window = row === undefined ? undefined : memory.windowOf(symbol);
    const cadenceMs = window?.cadenceMs();
    const maxAgeMs = lateAfterMs(cadenceMs);
    const lastAtMs = row && row.pill.received_at / 1000;
    const { now: marketNow } = market;
    const { quiet } = judgeSilence({
      ...{ lastAtMs, lateAfterMs: maxAgeMs, market: marketNow, nowMs },
      hearingSinceMs: hearing.sinceMs(),
    });
    // Test symbols do not show that the generator lives, nor does it show that they do.
    const heard = isTestSymbol(symbol)
      ? { lastReceivedAt: row?.pill.received_at, lateAfterMs: maxAgeMs }
      : memory.generator();
    const isInSession = marketNow.state === 'unknown' ? undefined : marketNow.state === 'open';
    const isNewest = isSame(pill, row);
    const values = window?.spreads();
    return {
      ...{ now, symbol, pill, market, cadenceMs, maxAgeMs, quiet },
      faults: [...partFaults([memory.partitionOf(symbol)], nowMs), ...faults],
      newer: isNewest || row === undefined ? undefined : { ...row.pill, partition: row.partition },
      generator: generatorState({ ...heard, isInSession }, now),
      spread:
        pill === undefined || values === undefined || values.length === 0
          ? undefined
          : spreadFigures(values, pill.gross_spread_percent),
      isSpreadWhole: window?.isWhole ?? true,
    };
  };
  const judged = (facts: Facts): Weighed => ({ facts, judgement: judge(facts) });

  return {
    warm,
    faults: () => partFaults(memory.recent.starts.keys(), nowMicros() / 1000),
    async weigh(symbol, pill, faults = []) {
      const window = view.get(symbol) === undefined ? undefined : memory.windowOf(symbol);
      if (window?.isWhole === false) {
        const filled = warm(symbol);
        if (window.count < VERIFY_LIMITS.windowPillsMin) {
          await Promise.race([filled, sleep(VERIFY_LIMITS.fillWaitMs)]);
        }
      }
      // Asked again: it may have gone on meanwhile.
      const row = view.get(symbol);
      return judged(gather(symbol, pill ?? (row && weighedRow(row)), row, faults));
    },
    weighNothing: (symbol, faults) => judged(gather(symbol, undefined, view.get(symbol), faults)),
  };
}

/** A row of the view as it is weighed. */
function weighedRow({ partition, pill }: LatestRow): WeighedPill {
  return { ...pill, partition };
}

/** Whether a pill is the newest of its symbol. */
export function isSame(pill: WeighedPill | undefined, row: LatestRow | undefined): boolean {
  return pill?.offset === row?.pill.offset && pill?.partition === row?.partition;
}
