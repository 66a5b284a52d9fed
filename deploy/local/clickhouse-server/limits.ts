/** A statement without the rows of an insert. */
export const STATEMENT_BYTES_MAX = 1024 * 1024;
/** Settings and parameters of one request; each is a statement to the engine. */
export const PARAMETERS_MAX = 1_000;
/** Rows of one insert after decompression; they wait on disk, not in memory. */
export const INSERT_BYTES_MAX = 256 * 1024 * 1024;
/** Rows of all inserts that wait or run. */
export const SPOOL_BYTES_MAX = 1024 * 1024 * 1024;
/** A result is held in memory as a whole before it is sent. */
export const RESULT_BYTES_MAX = 256 * 1024 * 1024;
/** Statements that wait for the engine, over all queues. */
export const WAITING_MAX = 256;
/** A statement that has waited this long is answered 503. */
export const WAIT_MS_MAX = 30_000;
/** A client has this long to send its whole request. */
export const REQUEST_MS_MAX = 60_000;
export const CONNECTIONS_MAX = 512;

/** Limits of the user `analyst`; a client may lower them, not raise them. */
export const ANALYST_LIMITS = {
  max_execution_time: 5,
  max_memory_usage: 1024 * 1024 * 1024,
  max_rows_to_read: 100_000_000,
  max_result_rows: 100_000,
  max_result_bytes: 64 * 1024 * 1024,
  max_threads: 1,
} as const;
