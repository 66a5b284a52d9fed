/** Bounds of history. Each is told where it is met. */
export const HISTORY_LIMITS = {
  /** Pills of a page. */
  pageDefault: 1_000,
  pageMax: 5_000,
  /** Length of a question by time. */
  rangeDaysMax: 31,
  /** Places of the log in a question by position, all partitions together; a granted gap has none. */
  placesMax: 10_000_000,
  /** Places that one statement looks at first, and by how much the next one looks further. */
  windowPlaces: 50_000,
  windowGrowth: 8,
  /** After so long a page ends where it is, full or not: the next one goes on from there. */
  pageMs: 1_500,
  /** How long an answer waits for the pills up to `until` to be stored; the sink writes each second. */
  behindWaitMs: 3_000,
  behindPollMs: 100,
  /** Requests that wait for that, of all accounts and of one; over it 503. */
  waitersMax: 1_000,
  waitersOfAccountMax: 100,
  /** How old what is known of the sink's progress may be. */
  progressMaxAgeMs: 200,
  /** Pages being read at a time, by all accounts and by one; those that wait; and how long. */
  readingMax: 8,
  readingOfAccountMax: 4,
  waitingMax: 200,
  waitingMs: 3_000,
  /** One statement: ClickHouse ends it, and we after it. */
  statementS: 3,
  statementMs: 4_000,
  statementRowsMax: 100_000_000,
  statementBytesMax: 500_000_000,
  statementThreads: 2,
} as const;
