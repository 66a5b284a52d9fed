/** Bounds of the analytics, with their units. */
export const ANALYTICS_LIMITS = {
  /** Questions of one process that are worked on at a time, and of one account. */
  readingMax: 4,
  readingOfAccountMax: 2,
  /** Questions that wait for their turn, and how long; over it 503. */
  waitingMax: 64,
  waitingMs: 2_000,
  /** What one statement may cost: ClickHouse ends it, and we after it. */
  statementS: 5,
  statementMs: 6_000,
  statementBytesMax: 1_073_741_824,
  statementRowsMax: 20_000_000,
  statementRowsAnswered: 250_000,
  /** Answers that are kept, in all; the oldest used leaves first. */
  keptBytesMax: 33_554_432,
  /** How long it is known how far the table is. */
  asOfKeptMs: 250,
  /** How long an answer is kept whose time goes up to now, and one whose bars cannot change soon. */
  keptMs: 1_000,
  keptSettledMs: 60_000,
} as const;

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** Longest time between `from` and `to`, and what is taken when neither is given, in s. */
export const RANGES = {
  summary: { byDefaultS: DAY_S, maxS: 31 * DAY_S },
  states: { byDefaultS: DAY_S, maxS: 7 * DAY_S },
  outliers: { byDefaultS: HOUR_S, maxS: DAY_S },
  cadence: { byDefaultS: DAY_S, maxS: 7 * DAY_S },
  correlation: { byDefaultS: 6 * HOUR_S, maxS: 31 * DAY_S },
  confidence: { byDefaultS: DAY_S, maxS: 31 * DAY_S },
  confidenceOfAll: { byDefaultS: DAY_S, maxS: DAY_S },
} as const;

/** By interval: its length, and the same two. */
export const BAR_RANGES = {
  '1s': { stepS: 1, byDefaultS: 10 * MINUTE_S, maxS: DAY_S },
  '1m': { stepS: MINUTE_S, byDefaultS: 6 * HOUR_S, maxS: 31 * DAY_S },
  '1h': { stepS: HOUR_S, byDefaultS: 7 * DAY_S, maxS: 366 * DAY_S },
  '1d': { stepS: DAY_S, byDefaultS: 92 * DAY_S, maxS: 3_660 * DAY_S },
} as const;
export type Interval = keyof typeof BAR_RANGES;

/** Bars of a page. */
export const BARS_MAX = 1_000;
/** Symbols, and steps of time, of a correlation. */
export const CORRELATED_MAX = 20;
export const CORRELATED_STEPS_MAX = 10_000;
/** Pills of which one can ask for outliers at a time. */
export const OUTLIER_PILLS_MAX = 100_000;
/** Gaps that are named; the count tells of all. */
export const GAPS_MAX = 100;
