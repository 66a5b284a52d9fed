import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';

const PEPPER_BYTES = 32;

/** Makes the pepper of a stack's folder, once: another one would void every key. */
export function ensurePepper(file: string): void {
  try {
    writeFileSync(file, `${randomBytes(PEPPER_BYTES).toString('hex')}\n`, {
      flag: 'wx',
      mode: 0o600,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
