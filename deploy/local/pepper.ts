import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs';

const PEPPER_BYTES = 32;

/**
 * Makes the pepper of a stack's folder, once: another one would void every key. It is written
 * beside and linked to its name: a crash leaves no half of one, and one that is there stays.
 */
export function ensurePepper(file: string): void {
  const beside = `${file}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  const handle = openSync(beside, 'wx', 0o600);
  try {
    writeSync(handle, `${randomBytes(PEPPER_BYTES).toString('hex')}\n`);
    fsyncSync(handle);
    linkSync(beside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    closeSync(handle);
    rmSync(beside, { force: true });
  }
}
