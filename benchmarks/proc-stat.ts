import { readFileSync } from 'node:fs';
import os from 'node:os';

/** The unit in which Linux tells CPU times to programs, on all its platforms. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4_096;

/** CPU seconds of a process, all its threads, since it began; null where it cannot be read. */
export function cpuSecondsOf(pid: number | undefined): number | null {
  const times = pid === undefined ? undefined : readTimes(pid);
  return times === undefined ? null : times.own / TICKS_PER_S;
}

/** The same with its children, those that have ended included: a server of many processes. */
export function cpuSecondsOfTree(pid: number | undefined): number | null {
  const times = pid === undefined ? undefined : readTimes(pid);
  if (times === undefined) return null;
  const living = childrenOf(pid!).map((child) => readTimes(child)?.own ?? 0);
  return [times.own, times.ended, ...living].reduce((sum, ticks) => sum + ticks, 0) / TICKS_PER_S;
}

/** Pids of the children of a process. */
export function childrenOf(pid: number): number[] {
  const told = readProc(pid, `task/${pid}/children`)?.split(' ') ?? [];
  return told.filter((text) => text.trim() !== '').map(Number);
}

/** Resident memory of a process in bytes; null where it cannot be read. */
export function residentBytesOf(pid: number | undefined): number | null {
  const statm = pid === undefined ? undefined : readProc(pid, 'statm');
  return statm === undefined ? null : Number(statm.split(' ')[1]) * PAGE_BYTES;
}

/** Busy seconds of all cores since the machine began: against the wall, how many were busy. */
export function busySeconds(): number {
  const busyMs = os.cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq);
  return busyMs.reduce((sum, ms) => sum + ms, 0) / 1_000;
}

function readTimes(pid: number): { readonly own: number; readonly ended: number } | undefined {
  const stat = readProc(pid, 'stat');
  if (stat === undefined) return undefined;
  // The command name (field 2) may hold spaces and brackets: count from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  return { own: user + system, ended: endedUser + endedSystem };
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined;
  }
}
