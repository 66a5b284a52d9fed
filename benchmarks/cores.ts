import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { childrenOf } from './proc-stat.ts';

/** Which cores the measured server has, and which all the rest. As `taskset` takes them. */
export interface Cores {
  /** One core, the last. */
  readonly server: string;
  /** Load client, broker and all else that runs for the benchmark. */
  readonly others: string;
}

/** @returns null with one core, and where there is no `taskset` (other than Linux). */
export function splitCores(): Cores | null {
  const allowed = allowedCores();
  return allowed === undefined || !hasTaskset() ? null : split(allowed);
}

/** @param allowed cores as Linux lists them: `0-3,6` */
export function split(allowed: string): Cores | null {
  const cores = allowed.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
  const server = cores.pop();
  return server === undefined || cores.length === 0
    ? null
    : { server: String(server), others: cores.join(',') };
}

/** The command that runs another held to these cores; as it is without any. */
export function onCores(cores: string | undefined, command: string, args: readonly string[]) {
  if (cores === undefined) return { command, args };
  return { command: 'taskset', args: ['-c', cores, command, ...args] };
}

/** Holds processes that run, all their threads, to these cores; their later children inherit it. */
export function holdTo(cores: string, pids: readonly (number | undefined)[]): void {
  const living = pids.filter((pid) => pid !== undefined);
  for (const pid of living.flatMap((one) => [one, ...childrenOf(one)])) {
    try {
      execFileSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { stdio: 'ignore' });
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Cores that this process may use now. */
export function allowedCores(): string | undefined {
  try {
    const status = readFileSync('/proc/self/status', 'latin1');
    return /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1];
  } catch {
    return undefined;
  }
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
