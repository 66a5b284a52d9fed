/** Bounds and intervals of the process that delivers to destinations. */
export const LIMITS = {
  /** Destinations that one process delivers to; further ones wait for another process. */
  runningMax: 20,
  /** Pills of one piece: one object, one Parquet row group. Encoding takes some 100 ms at most. */
  piecePillsMax: 20_000,
  /** Pills in memory for one destination; above this, a growing piece is delivered at once. */
  heldPillsMax: 50_000,
  /** A window ends this long after its end in record time, if no record shows its end before. */
  windowGraceMs: 5_000,
  /** A partition without a record for so long is caught up, as far as the end of a window goes. */
  idleMs: 2_000,
  tickMs: 1_000,
  /** Another process takes a destination over this long after its owner last renewed its lease. */
  leaseS: 10,
  /** Rows are read, leases renewed, and changes taken over. */
  pollMs: 1_000,
  /** A position without new pills is written at most this often. */
  positionIntervalMs: 5_000,
  /** The state of symbols is written with a position at most this often. */
  snapshotIntervalMs: 30_000,
  /** Wait after a failure, doubling, and its bound. */
  retryMs: { firstMs: 1_000, maxMs: 60_000 },
  /** Wait before a runner that lost the log or its state starts again. */
  restartMs: { firstMs: 1_000, maxMs: 30_000 },
  /** A runner that worked for so long begins with the first wait again. */
  steadyMs: 60_000,
  /** Equal attempts of this time are one row. */
  attemptsFlushMs: 5_000,
  pruneMs: 600_000,
  pruneRows: 5_000,
  /** Of the stop of the process. */
  stopMs: 3_000,
} as const;
