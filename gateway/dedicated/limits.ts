/** Every bound of the supervisor, with its unit. */
export const LIMITS = {
  /** Interval of reading the table; notifications shorten it. */
  followMs: 1_000,
  /** Minimum interval between two readings of the table, for any number of notifications. */
  followDistanceMs: 100,
  /** Interval of requesting reports from the processes. */
  reportMs: 1_000,
  /** Time in which the processes must answer. */
  answerMs: 200,
  /** An unchanged state is written again after this time. */
  rewriteMs: 5_000,
  /** Processes that read the log to its end at a time: a start takes a core a second or two. */
  startingMax: 4,
  /** A process that starts for longer than this no longer delays other starts. */
  startingCountsMs: 10_000,
  /** A serving process without an answer for this time is killed and restarted. */
  silentMaxMs: 20_000,
  /** A starting process without progress in the log for this time is killed and restarted. */
  stuckMaxMs: 60_000,
  /** Time from the `end` command to SIGTERM. */
  endMs: 1_500,
  /** Time from SIGTERM to the kill; below the time in which the supervisor itself must exit. */
  stopMs: 5_000,
  /** Pause after a process could not be started at all. */
  startAgainMs: 5_000,
  backoff: { firstMs: 200, maxMs: 10_000, resetAfterMs: 30_000 },
  /** Interval of deleting rows that were removed long ago. */
  pruneMs: 3_600_000,
} as const;
