import { statSync } from 'node:fs';
import type { ConfigReader } from '../../../lib/config/config.ts';
import type { Log } from '../../../lib/log/log.ts';
import { type Overrides, parseOverrides } from './overrides.ts';
import { readSettingsFile } from './settings-file.ts';

export type OverridesFile = ReturnType<typeof openOverridesFile>;

/** Reads CALENDAR_OVERRIDES, and checks the file. @returns its path */
export function readOverridesPath(reader: ConfigReader): string | undefined {
  const path = reader.get('CALENDAR_OVERRIDES');
  reader.attempt(() => read(path), undefined);
  return path;
}

/**
 * Reads the file for the first time; keeps no handle open. Without a path there are no overrides.
 * @throws ConfigError: a typing error must not make a closed market look open.
 */
export function openOverridesFile(path: string | undefined, log: Log) {
  let seen = stampOf(path);
  let overrides = read(path);
  return {
    /** The last valid content of the file. */
    get overrides() {
      return overrides;
    },
    /**
     * Reloads the file if it has changed: a typhoon is announced in the morning, without time to
     * restart a gateway. A missing or faulty file is logged once per change, and the overrides read
     * before stay in force. @returns the new overrides, or undefined if there are none
     */
    refresh(): Overrides | undefined {
      const stamp = stampOf(path);
      if (stamp === seen) return undefined;
      seen = stamp;
      try {
        overrides = read(path);
      } catch (error) {
        log.warn(
          { fault: (error as Error).message },
          'the calendar overrides are unchanged: correct the file',
        );
        return undefined;
      }
      log.info({ path }, 'the calendar overrides were reloaded');
      return overrides;
    },
  };
}

function read(path: string | undefined): Overrides {
  if (path === undefined) return {};
  return readSettingsFile('CALENDAR_OVERRIDES', path, parseOverrides).overrides;
}

/** A text that changes with the file; empty while the file does not exist. */
function stampOf(path: string | undefined): string {
  if (path === undefined) return '';
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
}
