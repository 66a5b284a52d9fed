import { pino } from 'pino';

export type Log = pino.Logger;

/** Creates the log of a process: one JSON document per line on stderr, level from `LOG_LEVEL`. */
export function createLog(name: string, level = 'info'): Log {
  // Synchronous, so that the last line before a crash is written.
  return pino(
    { name, level, base: { name, pid: process.pid } },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** A log without output, for tests. */
export const silentLog: Log = pino({ level: 'silent' });
