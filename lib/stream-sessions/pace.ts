/** Between two writes of a process, in ms; all else is told in these. */
export const WRITE_EVERY_MS = 400;
/**
 * A process that missed so many writes is not counted against anyone: it died, and the sockets it
 * wrote down are ghosts.
 */
export const COUNTED_WRITES = 4;
/**
 * Looks, one after each write, at which an account must be over its limit: at the last of them no
 * ghost that the first one saw is counted any more.
 */
export const CROWDED_LOOKS = COUNTED_WRITES + 1;
/** A process that has not written for so long holds no sockets any more, in s. */
export const PROCESS_ALIVE_S = 3;
/** Rows of a process that is gone are cleared after this, in s. */
export const CLEARED_AFTER_S = 60;
