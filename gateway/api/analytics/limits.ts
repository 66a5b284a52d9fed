/** Bounds of the analytics, with their units. */
export const ANALYTICS_LIMITS = {
  /** Queries that run at a time: per process, and per account. */
  activeMax: 4,
  activeOfAccountMax: 2,
  /** Queries that wait for a turn, and for how long; beyond either bound the answer is 503. */
  waitingMax: 64,
  waitingOfAccountMax: 32,
  waitingMs: 2_000,
  /** Cost of one statement: ClickHouse stops it after `statementS`, we after `statementMs`. */
  statementS: 5,
  statementMs: 6_000,
  statementBytesMax: 1_073_741_824,
  statementRowsMax: 20_000_000,
  resultRowsMax: 250_000,
  /** Arrow or Parquet of an answer, in memory as a whole. */
  bodyBytesMax: 16_777_216,
  /** All cached answers together; the least recently used is evicted first. */
  cacheBytesMax: 33_554_432,
  /** How long the table's freshness is cached. */
  freshnessMaxAgeMs: 250,
  /** How long an answer is cached: one whose window reaches to now, and one that is settled. */
  cacheMs: 1_000,
  cacheSettledMs: 60_000,
} as const;

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** Length of a window in s: the default when `from` is absent, and the maximum. */
export const RANGES = {
  summary: { byDefaultS: DAY_S, maxS: 31 * DAY_S },
  states: { byDefaultS: DAY_S, maxS: 7 * DAY_S },
  outliers: { byDefaultS: HOUR_S, maxS: DAY_S },
  cadence: { byDefaultS: DAY_S, maxS: 7 * DAY_S },
  correlation: { byDefaultS: 6 * HOUR_S, maxS: 31 * DAY_S },
  confidence: { byDefaultS: DAY_S, maxS: 31 * DAY_S },
  confidenceOfAll: { byDefaultS: DAY_S, maxS: DAY_S },
} as const;

/** The same for bars, by interval, shortest first; `stepS` is the length of a bar. */
export const BAR_RANGES = {
  '1s': { stepS: 1, byDefaultS: 10 * MINUTE_S, maxS: DAY_S },
  '1m': { stepS: MINUTE_S, byDefaultS: 6 * HOUR_S, maxS: 31 * DAY_S },
  '5m': { stepS: 5 * MINUTE_S, byDefaultS: DAY_S, maxS: 92 * DAY_S },
  '15m': { stepS: 15 * MINUTE_S, byDefaultS: 3 * DAY_S, maxS: 183 * DAY_S },
  '30m': { stepS: 30 * MINUTE_S, byDefaultS: 5 * DAY_S, maxS: 183 * DAY_S },
  '1h': { stepS: HOUR_S, byDefaultS: 7 * DAY_S, maxS: 366 * DAY_S },
  '4h': { stepS: 4 * HOUR_S, byDefaultS: 31 * DAY_S, maxS: 1_830 * DAY_S },
  '1d': { stepS: DAY_S, byDefaultS: 92 * DAY_S, maxS: 3_660 * DAY_S },
} as const;
export type Interval = keyof typeof BAR_RANGES;

/** Bars per page, of all symbols together, and symbols of one request. */
export const BARS_MAX = 1_000;
export const BARS_SYMBOLS_MAX = 20;
/** Symbols, and time steps, of one correlation. */
export const CORRELATED_MAX = 20;
export const CORRELATED_STEPS_MAX = 10_000;
/** Pills that one request for outliers may cover. */
export const OUTLIER_PILLS_MAX = 100_000;
/** Gaps that are listed; `gaps_count` counts all. */
export const GAPS_MAX = 100;
