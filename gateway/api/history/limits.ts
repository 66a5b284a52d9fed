/** Bounds of history. Each is named in the answer that exceeds it. */
export const HISTORY_LIMITS = {
  /** Pills per page. */
  pageDefault: 1_000,
  pageMax: 5_000,
  /** Length of a range by time, and its symbols. */
  rangeDaysMax: 31,
  symbolsMax: 20,
  /** Offsets in a range by position, over all partitions; a granted gap has no such bound. */
  offsetsMax: 10_000_000,
  /** Offsets that the first statement of a page covers, and the growth of each further one. */
  windowOffsets: 50_000,
  windowGrowth: 8,
  /** Arrow or Parquet of a page, in memory as a whole: 5,000 pills of 1 KiB fit. */
  bodyBytesMax: 16_777_216,
  /** After this time a page ends, full or not; the next page continues from there. */
  pageMs: 1_500,
  /** How long a request waits for the pills up to `until`; the sink writes every second. */
  behindWaitMs: 3_000,
  behindPollMs: 100,
  /** Requests that wait for the sink: of all accounts, and of one; beyond either bound, 503. */
  waitersMax: 1_000,
  waitersOfAccountMax: 100,
  /** Age of the cached table coverage. */
  coverageMaxAgeMs: 200,
  /** Pages read at a time, in all and per account; how many requests wait for a turn, how long. */
  activeMax: 8,
  activeOfAccountMax: 4,
  waitingMax: 200,
  waitingOfAccountMax: 100,
  waitingMs: 3_000,
  /** Cost of one statement: ClickHouse stops it after `statementS`, we after `statementMs`. */
  statementS: 3,
  statementMs: 4_000,
  statementRowsMax: 100_000_000,
  statementBytesMax: 500_000_000,
  statementThreads: 2,
} as const;
