/** Every bound of the supervisor, with its unit. */
export const LIMITS = {
  /** How often the table is read; notifications bring it forward. */
  followMs: 1_000,
  /** Between two readings of the table, however many notifications come. */
  followDistanceMs: 100,
  /** How often the processes are asked how they are. */
  reportMs: 1_000,
  /** For their answers. */
  answerMs: 200,
  /** What has not changed is told again after this. */
  retellMs: 5_000,
  /** Processes that read the log to its end at a time: starting costs a core a second or two. */
  startingMax: 4,
  /** One that takes longer does not hold up the others. */
  startingCountsMs: 10_000,
  /** One that served and then does not answer is killed, and started again. */
  silentMaxMs: 20_000,
  /** One that does not serve, and gets no further in the log, too. */
  stuckMaxMs: 60_000,
  /** From the order to end to the signal. */
  endMs: 1_500,
  /** From the signal to the kill; below the time in which the supervisor itself must be gone. */
  stopMs: 5_000,
  /** After one could not be started at all. */
  startAgainMs: 5_000,
  backoff: { firstMs: 200, maxMs: 10_000, resetAfterMs: 30_000 },
  /** How often rows that were removed long ago are deleted. */
  pruneMs: 3_600_000,
} as const;
