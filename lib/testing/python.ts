import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../root.ts';

const run = promisify(execFile);

/** A slow disk or network is told as such, not waited for until the test run ends. */
const INSTALL_MS = 150_000;

/**
 * A Python with the packages of a requirements file, or why there is none. Kept for later runs, by
 * the text of the requirements: an installation takes some 15 s.
 */
export async function makePython(
  requirements: string,
): Promise<{ readonly python: string } | { readonly reason: string }> {
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const kept = path.join(packageRoot, 'node_modules', '.cache', 'pillole', `python-${hash}`);
  const python = path.join(kept, 'bin', 'python');
  if (existsSync(python)) return { python };
  mkdirSync(path.dirname(kept), { recursive: true });
  const folder = mkdtempSync(`${kept}-`);
  const options = ['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '10'];
  const pip = ['-m', 'pip', 'install', ...options, '-r', requirements];
  try {
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS });
    await run(path.join(folder, 'bin', 'python'), pip, { timeout: INSTALL_MS });
    // Whole or not at all; a run beside this one may have been first.
    if (!existsSync(kept)) renameSync(folder, kept);
    return { python };
  } catch (error) {
    const { stderr, message, killed } = error as Error & { stderr?: string; killed?: boolean };
    if (killed === true) return { reason: `it took longer than ${INSTALL_MS / 1000} s` };
    return { reason: (stderr || message).trim().split('\n').at(-1)!.slice(0, 200) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
