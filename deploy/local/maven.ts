/** Engines that come as Maven artifacts: fetched once, kept whole or not at all. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isAlive, parseIdentity, startTimeOf } from './process-identity.ts';
import { Sorry } from './sorry.ts';

/** Lines of Maven's output kept for the error message. */
const OUTPUT_LINES_MAX = 200;

/**
 * Fills `folder` by `fill(temporary folder)` and renames it into place, so that nobody finds half
 * of it; of two at a time the first wins. Does nothing when the folder is there.
 */
export async function fillOnce(
  folder: string,
  fill: (temporary: string) => Promise<void>,
): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
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

/** Runs Maven. @throws Sorry when it is missing or fails, with its first error line. */
export async function runMaven(args: readonly string[], signal?: AbortSignal): Promise<void> {
  const lines: string[] = [];
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn('mvn', ['-B', '-ntp', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    const keep = (chunk: Buffer) => {
      lines.push(...chunk.toString('utf8').split('\n'));
      lines.splice(0, Math.max(0, lines.length - OUTPUT_LINES_MAX));
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new Sorry(
              'Maven is needed once, to fetch the engines, and was not found; install it with: ' +
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
  throw new Sorry(`Maven could not fetch the engines: ${reason.replace('[ERROR] ', '').trim()}`);
}

/** What a killed download left: its name tells whose it was. */
function removeLeftovers(folder: string): void {
  const prefix = `${folder}.part-`;
  for (const name of readdirSync(dirname(folder))) {
    const path = join(dirname(folder), name);
    if (!path.startsWith(prefix)) continue;
    const [pid, owner] = path.slice(prefix.length).split('-');
    const startTime = Buffer.from(owner ?? '', 'hex').toString();
    const identity = parseIdentity(JSON.stringify({ pid: Number(pid), startTime }));
    if (identity !== undefined && isAlive(identity)) continue;
    rmSync(path, { recursive: true, force: true });
  }
}
