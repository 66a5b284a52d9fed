import { mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { writeFileAtomically } from '../../lib/write-file.ts';
import type { Place } from './place.ts';

/**
 * Forgets what a stack's folder says of running processes when the folder was copied from another:
 * its lock and its pids are the other stack's, which may well be running.
 */
export function settleHome(place: Place): void {
  mkdirSync(place.folder, { recursive: true });
  const file = path.join(place.folder, 'home');
  const here = realpathSync(place.folder);
  if (readHome(file) === here) return;
  if (readHome(file) !== undefined) {
    for (const one of [place.lock, place.stack, place.run]) {
      rmSync(one, { recursive: true, force: true });
    }
  }
  writeFileAtomically(file, here);
}

function readHome(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
