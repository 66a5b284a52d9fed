/** Interval between two writes of a process, in ms; the other times are multiples of it. */
export const WRITE_INTERVAL_MS = 400;
/** After this many missed writes, a process counts as dead and its sockets as closed. */
export const COUNTED_WRITES = 4;
/**
 * Consecutive reads, one after each write, that must find an account over its limit: by the last
 * one, sockets of a process that had died before the first are no longer counted.
 */
export const OVER_LIMIT_READS = COUNTED_WRITES + 1;
/** Sockets of a process that has not written for this long are not listed, in s. */
export const PROCESS_ALIVE_S = 3;
/** Rows of a dead process are deleted after this, in s. */
export const CLEARED_AFTER_S = 60;
