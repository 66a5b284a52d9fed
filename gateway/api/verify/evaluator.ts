import { setTimeout as sleep } from 'node:timers/promises';
import { lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import { generatorState } from '../../../domain/market/quiet/generator-state.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import { judgeSilence } from '../../../domain/market/quiet/silence.ts';
import type { LatestRow } from '../../../domain/order/latest-table.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { LatestView } from '../pills/latest-view.ts';
import type { FindUnknown } from '../server/known-symbols.ts';
import type { Facts, SubjectPill } from './facts.ts';
import type { FeedHealth } from './feed-health.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { LogCache } from './log-cache.ts';
import { marketFacts } from './market-facts.ts';
import type { Reason } from './reasons.ts';
import { spreadFigures } from './spread.ts';
import { type Judgement, judge } from './verdict.ts';
import type { FillWindow } from './window-filler.ts';

/** Facts and the judgement that follows from them. */
export interface Evaluation {
  readonly facts: Facts;
  readonly judgement: Judgement;
}

interface EvaluatorDeps {
  readonly view: Pick<LatestView, 'get' | 'processed'>;
  readonly findUnknown: FindUnknown;
  readonly cache: LogCache;
  readonly fillWindow: FillWindow;
  readonly markets: Markets;
  readonly health: Omit<FeedHealth, 'sample'>;
  readonly nowMicros: () => Micros;
}

export type Evaluator = ReturnType<typeof createEvaluator>;

/** Gathers the facts about a symbol and judges one of its pills. */
export function createEvaluator(deps: EvaluatorDeps) {
  const { view, cache, fillWindow, nowMicros } = deps;
  const judged = (facts: Facts): Evaluation => ({ facts, judgement: judge(facts) });
  return {
    /** Parts that are unavailable or behind, for all symbols. */
    faults: () => partFaults(deps, cache.recent.starts.keys(), nowMicros() / 1000),
    /**
     * Evaluates the newest pill of a symbol, or another one of its pills. Waits, for a quarter of a
     * second at most, only if the cache has too few pills of the symbol.
     */
    async evaluate(symbol: string, pill?: SubjectPill): Promise<Evaluation> {
      const window = view.get(symbol) === undefined ? undefined : cache.windowOf(symbol);
      if (window?.isWhole === false) {
        const filled = fillWindow(symbol);
        if (window.count < VERIFY_LIMITS.windowPillsMin) {
          await Promise.race([filled, sleep(VERIFY_LIMITS.fillWaitMs)]);
        }
      }
      // Read again: there may be a newer pill now.
      const row = view.get(symbol);
      const newest = row && { ...row.pill, partition: row.partition };
      return judged(gatherFacts(deps, symbol, pill ?? newest, row, []));
    },
    /** Evaluates a pill that was not found. @param faults why it may exist all the same */
    evaluateMissing: (symbol: string, faults: readonly Reason[]) =>
      judged(gatherFacts(deps, symbol, undefined, view.get(symbol), faults)),
  };
}

/** Which of the parts that a verdict rests on are unavailable or behind. */
function partFaults(
  { view, cache, health }: EvaluatorDeps,
  partitions: Iterable<number>,
  nowMs: number,
): Reason[] {
  const fault = health.fault();
  if (fault !== undefined) return [fault];
  let waitedMs = 0;
  for (const partition of partitions) {
    const processed = view.processed().get(partition) ?? -1;
    waitedMs = Math.max(waitedMs, cache.waitingMs(partition, processed, nowMs));
  }
  if (waitedMs <= VERIFY_LIMITS.lagMaxMs) return [];
  const detail = `${(waitedMs / 1000).toFixed(1)} s behind, limit ${VERIFY_LIMITS.lagMaxMs / 1000} s`;
  return [{ code: 'view_behind', detail }];
}

function gatherFacts(
  deps: EvaluatorDeps,
  symbol: string,
  pill: SubjectPill | undefined,
  row: LatestRow | undefined,
  faults: readonly Reason[],
): Facts {
  const { cache, markets, health, nowMicros } = deps;
  const now = nowMicros();
  const nowMs = now / 1000;
  const market = marketFacts(markets, symbol, nowMs, pill && pill.timestamp / 1000);
  const window = row === undefined ? undefined : cache.windowOf(symbol);
  const cadenceMs = window?.cadenceMs();
  const maxAgeMs = lateAfterMs(cadenceMs);
  const { now: marketNow } = market;
  const { quiet } = judgeSilence({
    lastAtMs: row && row.pill.received_at / 1000,
    lateAfterMs: maxAgeMs,
    market: marketNow,
    nowMs,
    receivingSinceMs: health.connectedSinceMs(),
  });
  // The liveness of a test symbol is independent of the generator's.
  const liveness = isTestSymbol(symbol)
    ? { lastReceivedAt: row?.pill.received_at, lateAfterMs: maxAgeMs }
    : cache.generator();
  const isInSession = marketNow.state === 'unknown' ? undefined : marketNow.state === 'open';
  const isNewest = pill?.offset === row?.pill.offset && pill?.partition === row?.partition;
  const spreads = window?.spreads();
  return {
    now,
    symbol,
    meant: pill === undefined ? deps.findUnknown([symbol])[0]?.did_you_mean : undefined,
    pill,
    market,
    cadenceMs,
    maxAgeMs,
    quiet,
    faults: [...partFaults(deps, [cache.partitionOf(symbol)], nowMs), ...faults],
    newer: isNewest || row === undefined ? undefined : { ...row.pill, partition: row.partition },
    generator: generatorState({ ...liveness, isInSession }, now),
    spread:
      pill === undefined || spreads === undefined || spreads.length === 0
        ? undefined
        : spreadFigures(spreads, pill.gross_spread_percent),
    isSpreadWhole: window?.isWhole ?? true,
  };
}
