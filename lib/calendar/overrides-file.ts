import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '../config.ts';
import type { Log } from '../log.ts';
import { type Overrides, parseOverrides } from './overrides.ts';

const FILE_BYTES_MAX = 1_048_576;

/** A file of days that win over the calendars (overrides.ts), as it was last read. */
export interface OverridesFile {
  readonly overrides: Overrides;
  /**
   * Reads it again where it has changed: a typhoon is announced in the morning, and nobody restarts
   * a gateway then. A file that is gone or faulty is told in the log, once for each change, and
   * what was read before stays in force.
   * @returns the new overrides, or undefined where there are none
   */
  refresh(): Overrides | undefined;
}

/**
 * Reads a file only to say what is wrong with it, while the settings of a process are read.
 * @throws ConfigError in one sentence.
 */
export function checkOverridesFile(path: string | undefined): void {
  if (path !== undefined) read(path);
}

/**
 * Reads the file for the first time; holds nothing open. Without a path there are no such days.
 * @throws ConfigError: a typing error must not make a market open at the start.
 */
export function openOverridesFile(path: string | undefined, log: Log): OverridesFile {
  if (path === undefined) return { overrides: {}, refresh: () => undefined };
  let seen = stampOf(path);
  let overrides = read(path);
  return {
    get overrides() {
      return overrides;
    },
    refresh() {
      const stamp = stampOf(path);
      if (stamp === seen) return undefined;
      seen = stamp;
      try {
        overrides = read(path);
      } catch (error) {
        log.warn(
          { fault: (error as Error).message },
          'the calendar overrides are as they were before: mend the file',
        );
        return undefined;
      }
      log.info({ path }, 'the calendar overrides were read again');
      return overrides;
    },
  };
}

function read(path: string): Overrides {
  let text: string;
  try {
    if (statSync(path).size > FILE_BYTES_MAX) throw new Error(`is over ${FILE_BYTES_MAX} bytes`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`CALENDAR_OVERRIDES ${path} cannot be read: ${(error as Error).message}`);
  }
  const parsed = parseOverrides(text);
  if (parsed.ok) return parsed.overrides;
  throw new ConfigError(`CALENDAR_OVERRIDES ${path} is faulty: ${parsed.faults.join(' ')}`);
}

/** What changes when the file does; empty while it is not there. */
function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
}
