import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../lib/files/package-root.ts';

const run = promisify(execFile);

/** A slow disk or network gets reported, instead of stalling the test run. */
const INSTALL_MS = 280_000;

/**
 * Installs a Python with the packages of a requirements file, or returns the reason why it cannot.
 * Later runs reuse it by the text of the requirements: an installation takes some 15 s.
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
  const pip = [
    ...['-m', 'pip', 'install', '--require-hashes', '-r', requirements],
    ...['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '10'],
    // Python compiles the few modules that a test imports; pip would compile all.
    '--no-compile',
  ];
  try {
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS });
    await run(path.join(folder, 'bin', 'python'), pip, { timeout: INSTALL_MS });
    // Renamed when complete; a concurrent run may have been first.
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
