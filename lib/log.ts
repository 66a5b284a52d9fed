import { pino } from 'pino';

export type Log = pino.Logger;

/** Creates a process's log: one JSON document a line on stderr, level from `LOG_LEVEL`. */
export function createLog(name: string, level = 'info'): Log {
  // Synchronous, so that the line before a crash is there to read.
  return pino(
    { name, level, base: { name, pid: process.pid } },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** A log that says nothing, for tests. */
export const silentLog: Log = pino({ level: 'silent' });
