import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cpuSecondsOf, cpuSecondsOfTree } from '../proc-stat.ts';

/** CPU seconds by process. */
export type CpuByProcess = Readonly<Record<string, number>>;

/** Tells the CPU seconds that every process of a run has taken since it began. */
export interface CpuReader {
  /** `others` are pids that are not the stack's: load generator, sockets. */
  read(others: Readonly<Record<string, number | undefined>>): CpuByProcess;
}

/** PostgreSQL is a process for each connection; ended ones count as well. */
const TREES = new Set(['postgres']);

/**
 * Reads the processes of a stack on this machine, engines too, from the records that its launcher
 * keeps beside the stack file. Of a stack elsewhere it knows none.
 */
export function openCpuReader(stackFile: string | undefined): CpuReader {
  const pids = stackFile === undefined ? {} : pidsIn(path.join(path.dirname(stackFile), 'run'));
  return {
    read(others) {
      const seconds = Object.entries({ ...pids, ...others }).map(([name, pid]) => [
        name,
        TREES.has(name) ? cpuSecondsOfTree(pid) : cpuSecondsOf(pid),
      ]);
      return Object.fromEntries(seconds.filter(([, cpuS]) => cpuS !== null));
    },
  };
}

/** What was taken between two readings; a process that is not in both is left out. */
export function cpuBetween(before: CpuByProcess, after: CpuByProcess): CpuByProcess {
  const both = Object.keys(after).filter((name) => Object.hasOwn(before, name));
  return Object.fromEntries(
    both.map((name) => [name, Math.round((after[name]! - before[name]!) * 100) / 100]),
  );
}

function pidsIn(folder: string): Record<string, number> {
  try {
    const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
    return Object.fromEntries(
      files.map((file) => {
        const { pid } = JSON.parse(readFileSync(path.join(folder, file), 'utf8'));
        return [file.slice(0, -'.json'.length), Number(pid)];
      }),
    );
  } catch {
    return {};
  }
}
