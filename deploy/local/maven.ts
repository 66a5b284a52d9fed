import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { isSameAlive, parseIdentity, startTimeOf } from '../../lib/child-process/identity.ts';
import { SetupError } from './setup-error.ts';

/** Lines of Maven's output kept for the error message. */
const OUTPUT_LINES_MAX = 200;

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

/** Runs Maven. @throws SetupError when Maven is missing, or with its first error line */
export async function runMaven(args: readonly string[], signal?: AbortSignal): Promise<void> {
  const lines: string[] = [];
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn('mvn', ['-B', '-ntp', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    const collect = (chunk: Buffer) => {
      lines.push(...chunk.toString('utf8').split('\n'));
      lines.splice(0, Math.max(0, lines.length - OUTPUT_LINES_MAX));
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new SetupError(
              'Maven is required once, to download the engines, but was not found; install it with: ' +
                'sudo apt-get install maven (macOS: brew install maven)',
            )
          : error,
      ),
    );
    child.once('close', resolve);
  });
  signal?.throwIfAborted();
  if (code === 0) return;
  const reason = lines.find((line) => line.startsWith('[ERROR]')) ?? lines.at(-1) ?? '';
  throw new SetupError(
    `Maven could not download the engines: ${reason.replace('[ERROR] ', '').trim()}`,
  );
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
