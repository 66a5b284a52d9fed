import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { childrenOf } from './cpu.ts';

/**
 * Cores as `taskset` takes them: one core, the last, for the measured server, and the others for
 * the load client, the broker and everything else that runs for the benchmark.
 */
type Cores = Readonly<Record<'server' | 'others', string>>;

/** @returns null with one core, and where there is no `taskset` (other systems than Linux) */
export function splitCores() {
  if (!runTaskset('--version')) return null;
  const status = readFileSync('/proc/self/status', 'latin1');
  const all = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)![1]!;
  const cores = split(all);
  return cores === null ? null : { ...cores, all };
}

/** @param allowed cores as Linux lists them: `0-3,6` */
export function split(allowed: string): Cores | null {
  const cores = allowed.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
  const server = cores.pop();
  if (server === undefined || cores.length === 0) return null;
  return { server: String(server), others: cores.join(',') };
}

/** The command that runs another one on these cores only; unchanged without cores. */
export function onCores(cores: string | undefined, command: string, args: readonly string[]) {
  if (cores === undefined) return { command, args };
  return { command: 'taskset', args: ['-c', cores, command, ...args] };
}

/** Pins running processes, all their threads, to these cores; their later children inherit it. */
export function pinTo(cores: string, pids: readonly number[]): void {
  // A process that has ended meanwhile makes taskset fail, which does not matter.
  for (const pid of pids.flatMap((one) => [one, ...childrenOf(one)])) {
    runTaskset('-a', '-c', '-p', cores, String(pid));
  }
}

function runTaskset(...args: string[]): boolean {
  try {
    execFileSync('taskset', args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
