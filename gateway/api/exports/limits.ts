/** Bounds of exports. Each is named in the answer that exceeds it. */
export const EXPORT_LIMITS = {
  /** Days of one export; Institutional accounts have no such limit. */
  rangeDaysMax: 31,
  symbolsMax: 1_000,
  statesMax: 20,
  /** Exports of an account that wait or run, and that begin within 24 h. */
  openOfAccountMax: 3,
  dailyOfAccountMax: 20,
  /** Exports of all accounts that wait or run. */
  openMax: 200,
  /** Rows of an export, one file, and all files together. Beyond the last, new exports are refused. */
  rowsMax: 500_000_000,
  fileBytesMax: 21_474_836_480,
  allBytesMax: 53_687_091_200,
  /** Finished, failed and canceled exports are deleted after this time. */
  keptS: 86_400,
  /** Pills of one slice: a row group of Parquet. */
  sliceRows: 100_000,
  /** Bytes of one slice, in memory as a whole. */
  sliceBytesMax: 134_217_728,
  /** A process that has not confirmed its export for this long has lost it. */
  leaseS: 30,
  /** Processes that may begin an export, in turn, before it fails. */
  attemptsMax: 3,
  /** How often a free process looks for an export, and for files to delete. */
  pollMs: 1_000,
  cleanMs: 60_000,
  /** How long a link is valid; new ones are free. */
  linkS: 600,
  /** Downloads at a time, of all exports and of one account. */
  downloadsMax: 64,
  downloadsOfAccountMax: 8,
  /** Estimates and slices at a time, of a process; one statement of them. */
  statementsMax: 2,
  statementS: 20,
  statementMs: 25_000,
  statementRowsMax: 2_000_000_000,
  statementBytesMax: 1_073_741_824,
} as const;
