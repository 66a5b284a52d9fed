import {
  BASELINE_PILLS,
  BASELINE_PILLS_MIN,
  ROBUST_Z_MAX,
} from '../../../domain/market/cadence/baseline.ts';

/** Bounds of verify. The answer contains the bounds that decide a verdict. */
export const VERIFY_LIMITS = {
  /** Symbols per request. */
  symbolsMax: 20,
  /** Pills listed for one id. */
  listMax: 100,
  /** Live pills of a symbol that a spread is compared with: the most, and the fewest. */
  windowPills: BASELINE_PILLS,
  windowPillsMin: BASELINE_PILLS_MIN,
  /** Symbols with a window in memory: 8.5 kB each, 70 MB in all. */
  windowsMax: 8_192,
  /** From this |robust z|, a spread is an outlier. */
  robustZMax: ROBUST_Z_MAX,
  /** The generator's and the exchange's clocks may differ by this much at an opening or a close. */
  boundaryMs: 1_000,
  /** A pill may be this far ahead of our clock and still count as current. */
  aheadMs: 1_000,
  /** How far the view may be behind the log. */
  lagMaxMs: 1_000,
  /** How long the log may be unreachable: a consumer that rejoins is disconnected for a moment. */
  disconnectedMaxMs: 2_000,
  /** Newest pills by identity, over all partitions: some 150 B each, 20 MB in all. */
  recentPillsMax: 131_072,
  /** How long a request waits for the older pills of a symbol whose window has too few. */
  fillWaitMs: 250,
  /** Pause after a failed read of a symbol's older pills. */
  fillRetryMs: 1_000,
  /** Failed symbols that end a round of prefetching: ClickHouse may be down. */
  prefetchFailuresMax: 8,
  /** Cost of one statement: ClickHouse stops it after `statementS`, we after `statementMs`. */
  statementS: 1,
  statementMs: 1_500,
  statementRowsMax: 50_000_000,
  statementBytesMax: 268_435_456,
  /** Statements in flight, and statements that wait; beyond that, a statement fails. */
  statementsMax: 4,
  statementsWaitingMax: 64,
  /** Age of the cached table coverage. */
  coverageMaxAgeMs: 200,
  /** Age of the cached receive time of the oldest pill in history. */
  firstsMaxAgeMs: 60_000,
  /** When to ask again: soonest, and latest while any pill may change the verdict. */
  askAgainMinMs: 1_000,
  askAgainMaxMs: 120_000,
  /** When to ask again while a part is unavailable. */
  askAgainFaultMs: 10_000,
  /** How long a verdict holds that nothing can change. */
  holdsMaxMs: 86_400_000,
  /** Calls by which `ask_again_at` follows a symbol in one UTC day, by the state of its market. */
  calls: { open: 850, closed: 100 },
} as const;

/** `limits` of an answer: the bounds that decided its verdict. */
export function verdictLimits(maxAgeMs: number, generatorLateAfterMs: number) {
  return {
    max_age_ms: maxAgeMs,
    generator_late_after_ms: generatorLateAfterMs,
    robust_z: VERIFY_LIMITS.robustZMax,
    spread_n_min: VERIFY_LIMITS.windowPillsMin,
    boundary_ms: VERIFY_LIMITS.boundaryMs,
    ahead_ms: VERIFY_LIMITS.aheadMs,
    lag_ms: VERIFY_LIMITS.lagMaxMs,
  };
}
