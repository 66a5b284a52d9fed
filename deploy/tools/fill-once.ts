import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { isSameAlive, parseIdentity, startTimeOf } from '../../lib/child-process/identity.ts';

/**
 * Fills `folder` once: calls `fill` on a temporary folder and renames it, so that no process finds a
 * partial folder; of two concurrent calls the first wins. Does nothing if the folder exists.
 */
export async function fillOnce(
  folder: string,
  fill: (temporary: string) => Promise<void>,
): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(path.dirname(folder), { recursive: true });
  removeLeftovers(folder);
  const owner = Buffer.from(startTimeOf(process.pid) ?? '').toString('hex');
  const temporary = `${folder}.part-${process.pid}-${owner}-${randomUUID().slice(0, 8)}`;
  mkdirSync(temporary);
  try {
    await fill(temporary);
    renameSync(temporary, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Removes folders of killed downloads; the folder's name identifies the process. */
function removeLeftovers(folder: string): void {
  const prefix = `${folder}.part-`;
  for (const name of readdirSync(path.dirname(folder))) {
    const leftover = path.join(path.dirname(folder), name);
    if (!leftover.startsWith(prefix)) continue;
    const [pid, owner] = leftover.slice(prefix.length).split('-');
    const startTime = Buffer.from(owner ?? '', 'hex').toString();
    const identity = parseIdentity(JSON.stringify({ pid: Number(pid), startTime }));
    if (identity !== undefined && isSameAlive(identity)) continue;
    rmSync(leftover, { recursive: true, force: true });
  }
}
