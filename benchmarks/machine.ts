import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { packageRoot, packageVersion } from '../lib/root.ts';

/** Where and with what a result was measured. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly os: string;
  readonly node: string;
  readonly version: string;
  /** Commit of the working tree; `+` where it has changes, null outside git. */
  readonly commit: string | null;
  /** Load average of the last minute when the run began: others at work spoil figures. */
  readonly loadBefore: number;
}

export function describeMachine(): Machine {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGib: Math.round((os.totalmem() / 2 ** 30) * 10) / 10,
    os: `${os.type()} ${os.release()}`,
    node: process.version,
    version: packageVersion,
    commit: currentCommit(),
    loadBefore: os.loadavg()[0] ?? 0,
  };
}

/** Of the working tree, as `Machine` has it. */
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
