import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Identity of a process: its pid and start time. The system reuses a pid alone but not both
 * together, so an unrelated process is never signalled. `startTime` is opaque: equal strings mean
 * the same process on the same boot.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/** Start time of a living process; undefined when there is none (a zombie counts as none). */
export function startTimeOf(pid: number): string | undefined {
  return process.platform === 'linux' ? linuxStartTime(pid) : psStartTime(pid);
}

/** Identity of a process that was just started; undefined when it has already exited. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? undefined : { pid, startTime };
}

/** Whether any process lives under this pid. */
export function isAlive(pid: number): boolean {
  return startTimeOf(pid) !== undefined;
}

/** Whether exactly this process lives. */
export function isSameAlive(identity: ProcessIdentity): boolean {
  return startTimeOf(identity.pid) === identity.startTime;
}

/** Parses a lock or run file; undefined for any other content (a partial file, an old format). */
export function parseIdentity(text: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const { pid, startTime } = value as Record<string, unknown>;
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 1) return undefined;
    return typeof startTime === 'string' ? { pid, startTime } : undefined;
  } catch {
    return undefined;
  }
}

function linuxStartTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command name (field 2) may contain spaces and brackets: count from the last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return `${bootId()}:${fields[19]}`;
  } catch {
    return undefined;
  }
}

let boot: string | undefined;
function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return boot;
}

function psStartTime(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  } catch {
    return undefined;
  }
}
