import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { packageRoot, packageVersion } from '../../lib/files/package-root.ts';

export function describeMachine() {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGib: Math.round((os.totalmem() / 2 ** 30) * 10) / 10,
    os: `${os.type()} ${os.release()}`,
    node: process.version,
    version: packageVersion,
    commit: currentCommit(),
    /** Load average of the last minute when the run began: other work spoils the figures. */
    loadBefore: os.loadavg()[0] ?? 0,
  };
}

/** Commit of the working tree; with `+` where the tree has changes, null outside git. */
export function currentCommit(): string | null {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: packageRoot,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no').trim() !== '';
    return git('rev-parse', '--short', 'HEAD').trim() + (changed ? '+' : '');
  } catch {
    return null;
  }
}
