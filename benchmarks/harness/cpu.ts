import { readFileSync } from 'node:fs';
import os from 'node:os';

/** Linux reports CPU times to programs in this unit on all its platforms. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4_096;

/** CPU seconds by process. */
export type CpuByProcess = Readonly<Record<string, number>>;

/** One process, or several that are added up. */
type Pids = number | undefined | readonly (number | undefined)[];

/**
 * Starts to measure the CPU of processes and of the machine. `postgres` counts with its children:
 * it is a process for each connection, and ended ones count as well.
 * @returns ends the measurement. A process whose times could not be read at both ends is left out
 */
export function meterCpu(processes: Readonly<Record<string, Pids>>) {
  const read = () => ({ at: performance.now(), busy: busySeconds(), cpu: readAll(processes) });
  const before = read();
  return () => {
    const after = read();
    const seconds = (after.at - before.at) / 1_000;
    const busy = after.busy - before.busy;
    const cpu = cpuBetween(before.cpu, after.cpu);
    const own = Object.values(cpu).reduce((sum, one) => sum + one, 0);
    return {
      seconds,
      cpu,
      /** Cores that a process took on average; NaN where its times cannot be read. */
      coresOf: (name: string) => (cpu[name] ?? Number.NaN) / seconds,
      /** Cores that were busy on average, with everything that ran on the machine. */
      busyCores: busy / seconds,
      /** Cores taken by processes that are not measured: idle engines and unrelated processes. */
      otherCores: Math.max(0, busy - own) / seconds,
    };
  };
}

/** CPU seconds between two readings; a process that is not in both is left out. */
export function cpuBetween(before: CpuByProcess, after: CpuByProcess): CpuByProcess {
  const both = Object.keys(after).filter((name) => Object.hasOwn(before, name));
  return Object.fromEntries(
    both.map((name) => [name, Math.round((after[name]! - before[name]!) * 100) / 100]),
  );
}

function readAll(processes: Readonly<Record<string, Pids>>): CpuByProcess {
  const seconds = Object.entries(processes).map(([name, pids]): [string, number] => {
    if (typeof pids === 'object') {
      return [name, pids.reduce<number>((sum, pid) => sum + (cpuSecondsOf(pid) || 0), 0)];
    }
    return [name, cpuSecondsOf(pids, name === 'postgres')];
  });
  return Object.fromEntries(seconds.filter(([, cpuS]) => !Number.isNaN(cpuS)));
}

/** CPU seconds of a process, all its threads, since it began; NaN where unreadable. */
export function cpuSecondsOf(pid: number | undefined, withChildren = false): number {
  const stat = readProc(pid, 'stat');
  if (stat === undefined) return Number.NaN;
  // The command name (field 2) may hold spaces and brackets: count from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  const own = (user + system) / TICKS_PER_S;
  if (!withChildren) return own;
  const ended = (endedUser + endedSystem) / TICKS_PER_S;
  return childrenOf(pid!).reduce((sum, child) => sum + (cpuSecondsOf(child) || 0), own + ended);
}

export function childrenOf(pid: number): number[] {
  return (readProc(pid, `task/${pid}/children`)?.match(/\d+/g) ?? []).map(Number);
}

/** Resident memory of a process in bytes; NaN where unreadable. */
export function residentBytesOf(pid: number): number {
  return Number(readProc(pid, 'statm')?.split(' ')[1]) * PAGE_BYTES;
}

/** Busy seconds of all cores since the machine started. */
function busySeconds(): number {
  const busyMs = os.cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq);
  return busyMs.reduce((sum, ms) => sum + ms, 0) / 1_000;
}

function readProc(pid: number | undefined, file: string): string | undefined {
  try {
    return pid === undefined ? undefined : readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined;
  }
}
