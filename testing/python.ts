import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { fillOnce } from '../deploy/tools/fill-once.ts';
import { takeLock } from '../lib/child-process/lock.ts';
import { waitFor } from './wait.ts';

const run = promisify(execFile);

/**
 * A slow disk or network gets reported, instead of stalling the test run. An installation takes 20 s
 * alone, and took over 280 s at a load of 40 on two cores.
 */
const INSTALL_MS = 540_000;
/** Installations of several requirements wait for each other. */
const TURN_MS = 1_500_000;

/** Kept between runs and shared by all checkouts: `npm ci` empties node_modules. */
const CACHE = path.join(
  process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'),
  'pillole-test',
);

/** Folder where mypy keeps what it knows of files by their content: it takes a minute without. */
export const MYPY_CACHE: string = path.join(CACHE, 'mypy');

/**
 * Installs a Python with the packages of a requirements file, or returns the reason why it cannot.
 * Later runs reuse it by the text of the requirements and the version of Python; several test
 * files wait for one installation.
 */
export async function makePython(
  requirements: string,
): Promise<{ readonly python: string } | { readonly reason: string }> {
  try {
    const { stdout: version } = await run('python3', ['-VV'], { timeout: INSTALL_MS });
    const hash = createHash('sha256').update(version).update(readFileSync(requirements));
    const kept = path.join(CACHE, `python-${hash.digest('hex').slice(0, 12)}`);
    await installOnce(kept, requirements);
    return { python: path.join(kept, 'bin', 'python') };
  } catch (error) {
    const { stderr, message, killed } = error as Error & { stderr?: string; killed?: boolean };
    if (killed === true) return { reason: `it took longer than ${INSTALL_MS / 1000} s` };
    return { reason: (stderr || message).trim().split('\n').at(-1)!.slice(0, 200) };
  }
}

/** Installs into a folder unless it exists, one process at a time: others wait for the first. */
async function installOnce(kept: string, requirements: string): Promise<void> {
  if (existsSync(kept)) return;
  const turn = await waitFor(
    'the installations of other tests',
    () => {
      const taken = takeLock(path.join(CACHE, 'install.lock'));
      return taken.ok && taken.lock;
    },
    TURN_MS,
  );
  try {
    await fillOnce(kept, (folder) => install(folder, requirements));
  } finally {
    turn.release();
  }
}

async function install(folder: string, requirements: string): Promise<void> {
  const pip = [
    ...['-m', 'pip', 'install', '--require-hashes', '-r', requirements],
    ...['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '10'],
    // Python compiles the few modules that a test imports; pip would compile all.
    '--no-compile',
  ];
  await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS });
  await run(path.join(folder, 'bin', 'python'), pip, { timeout: INSTALL_MS });
}
