import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { startChild } from '../../lib/child-process/child.ts';
import { isAlive, parseIdentity } from '../../lib/child-process/identity.ts';
import { readStackFile } from '../../lib/config/stack-file.ts';
import { packageRoot } from '../../lib/files/package-root.ts';

/** A whole local stack, as `npm start` runs it. */
export type LocalStack = Awaited<ReturnType<typeof launchStack>>;

const POLL_MS = 10;
const STOP_MAX_MS = 20_000;

/**
 * Starts a local stack on a data folder and waits for its stack file, which the launcher writes
 * when every process is ready.
 * @param words of the launcher's output; the result holds the moment at which each was printed
 * @throws when the launcher ends, or takes longer than `timeoutMs`
 */
export async function launchStack(
  folder: string,
  [command, ...args]: readonly [string, ...string[]],
  timeoutMs: number,
  { words = [], env = process.env }: { words?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
) {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  const launcher = await startChild({
    name: 'launcher',
    command,
    args: [...args, '--data', folder],
    cwd: packageRoot,
    env,
    logFolder: `${folder}-launcher`,
    runFolder: `${folder}-launcher`,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_MAX_MS,
  });
  const stop = async () => {
    const lock = path.join(folder, 'lock');
    const owner = parseIdentity(existsSync(lock) ? readFileSync(lock, 'utf8') : '');
    await launcher.stop();
    // npm may exit before the launcher that it started.
    const isGone = () => !isAlive(owner?.pid ?? launcher.pid);
    await waitUntil('the end of the launcher', isGone, { timeoutMs: STOP_MAX_MS });
    await rm(`${folder}-launcher`, { recursive: true, force: true });
  };
  const stackFile = path.join(folder, 'stack.json');
  const printedMs = new Map<string, number>();
  const output = () => readFileSync(launcher.logFile!, 'utf8');
  const isUp = () => {
    const text = output();
    for (const one of words) {
      if (!printedMs.has(one) && text.includes(one)) printedMs.set(one, elapsed());
    }
    return existsSync(stackFile);
  };
  const gaveUp = () =>
    launcher.exit() === undefined ? undefined : `the launcher ended:\n${output().slice(-2_000)}`;
  try {
    await waitUntil('the local stack', isUp, { timeoutMs, intervalMs: POLL_MS, gaveUp });
    return {
      stack: readStackFile(stackFile),
      stackFile,
      upMs: elapsed(),
      elapsed,
      printedMs,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs `work` with a temporary folder, which is removed afterwards. */
export async function inTemporaryFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
