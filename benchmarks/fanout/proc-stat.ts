import { readFileSync } from 'node:fs';
import os from 'node:os';

/** The unit in which Linux tells CPU times to programs, on all its platforms. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4_096;

/** CPU seconds of a process, all its threads, since it began; null where it cannot be read. */
export function cpuSecondsOf(pid: number | undefined): number | null {
  const stat = pid === undefined ? undefined : readProc(pid, 'stat');
  if (stat === undefined) return null;
  // The command name (field 2) may hold spaces and brackets: count from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
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

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined;
  }
}
