import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs';

const PEPPER_BYTES = 32;

/**
 * Creates the pepper of a stack's folder once: another pepper would void every key. A temporary file
 * is written and then linked, so that a crash leaves no partial file and an existing one stays.
 */
export function ensurePepper(file: string): void {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  const handle = openSync(temporary, 'wx', 0o600);
  try {
    writeSync(handle, `${randomBytes(PEPPER_BYTES).toString('hex')}\n`);
    fsyncSync(handle);
    linkSync(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    closeSync(handle);
    rmSync(temporary, { force: true });
  }
}
