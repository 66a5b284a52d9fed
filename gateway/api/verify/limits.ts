import { BASELINE_PILLS, BASELINE_PILLS_MIN, ROBUST_Z_MAX } from '../../../lib/signal/baseline.ts';

/** Bounds of verify. Those that decide a verdict stand in the answer. */
export const VERIFY_LIMITS = {
  /** Symbols of one request. */
  symbolsMax: 20,
  /** Pills of one id that are listed. */
  listMax: 100,
  /** Live pills of a symbol that its spread is held against, and the fewest that tell anything. */
  windowPills: BASELINE_PILLS,
  windowPillsMin: BASELINE_PILLS_MIN,
  /** Symbols whose pills are kept in memory: 8.5 kB each, 70 MB in all. */
  windowsMax: 8_192,
  /** From this |robust z| on a spread is an outlier. */
  robustZMax: ROBUST_Z_MAX,
  /** A generator's clock and the exchange's differ by so much at an opening or a close. */
  boundaryMs: 1_000,
  /** A pill may be ahead of our clock by so much and still be of now. */
  aheadMs: 1_000,
  /** How far the view may be behind the log. */
  lagMaxMs: 1_000,
  /** How long the log may be away: a consumer that joins anew is away for a moment. */
  awayMaxMs: 2_000,
  /** Newest pills by identity, all partitions together: 410 B each, 54 MB in all (measured). */
  recentPillsMax: 131_072,
  /** How long an answer waits for a symbol's older pills, where it has too few. */
  fillWaitMs: 250,
  /** A symbol's older pills are asked for again so long after it was in vain. */
  fillAgainMs: 1_000,
  /** Symbols that cannot be read ahead before it is left for a while: ClickHouse may be away. */
  warmFailuresMax: 8,
  /** One statement: ClickHouse ends it, and we after it. */
  statementS: 1,
  statementMs: 1_500,
  statementRowsMax: 50_000_000,
  statementBytesMax: 268_435_456,
  /** Statements under way, and those that wait for them; over it there is no answer. */
  statementsMax: 4,
  statementsWaitingMax: 64,
  /** How old what is known of the sink's progress may be. */
  progressMaxAgeMs: 200,
  /** How long the first pill of history, and of a symbol, is believed. */
  firstsMaxAgeMs: 60_000,
  /** When to ask again: a verdict that a pill may change, and one that it hardly will. */
  askAgainMinMs: 1_000,
  askAgainMaxMs: 60_000,
} as const;
