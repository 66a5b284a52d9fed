import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { identityOf, isSameAlive, type ProcessIdentity, parseIdentity } from './identity.ts';

export interface Lock {
  release(): void;
}

/**
 * Takes the lock, or returns its owner. The file names the owner: a lock whose owner is dead is
 * taken over. The file is a link to a finished file, so that no reader sees a part of it.
 */
export function takeLock(
  file: string,
):
  | { readonly ok: true; readonly lock: Lock }
  | { readonly ok: false; readonly owner: ProcessIdentity } {
  mkdirSync(path.dirname(file), { recursive: true });
  const self = identityOf(process.pid);
  if (self === undefined) throw new Error('cannot read the start time of this process');
  const mine = `${file}.${process.pid}.${randomUUID()}`;
  writeFileSync(mine, JSON.stringify(self));
  try {
    for (;;) {
      if (linkIfAbsent(mine, file))
        return { ok: true, lock: { release: () => release(file, self) } };
      const owner = readOwner(file);
      if (owner === 'absent') continue;
      if (owner !== 'unreadable' && isSameAlive(owner)) return { ok: false, owner };
      setAside(file, owner);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

function linkIfAbsent(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readOwner(file: string): ProcessIdentity | 'absent' | 'unreadable' {
  try {
    return parseIdentity(readFileSync(file, 'utf8')) ?? 'unreadable';
  } catch {
    return 'absent';
  }
}

/**
 * Two processes may find the same stale lock: the process that moved a live lock aside restores it.
 */
function setAside(file: string, expected: ProcessIdentity | 'unreadable'): void {
  const aside = `${file}.stale.${randomUUID()}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  const moved = readOwner(aside);
  const isAnothers =
    typeof moved === 'object' &&
    (expected === 'unreadable' || moved.startTime !== expected.startTime) &&
    isSameAlive(moved);
  if (isAnothers) linkIfAbsent(aside, file);
  rmSync(aside, { force: true });
}

function release(file: string, self: ProcessIdentity): void {
  const owner = readOwner(file);
  if (typeof owner === 'object' && owner.pid === self.pid && owner.startTime === self.startTime) {
    rmSync(file, { force: true });
  }
}
