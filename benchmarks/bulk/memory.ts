import { setTimeout as sleep } from 'node:timers/promises';
import type { PillTable } from '../analytics/pill-table.ts';
import { residentBytesOf } from '../harness/cpu.ts';

const SAMPLE_MS = 250;

/** Resident memory while an export had written so many pills. */
export interface MemorySample {
  readonly rows: number;
  readonly api: number;
  readonly clickhouse: number;
}

/**
 * Samples resident memory of processes, and what ClickHouse counts for its statements on pills (the
 * local engine keeps no log of them), until it is stopped. Bytes.
 * @returns `note` sets the pills that are written
 */
export async function watchMemory(
  table: PillTable,
  pids: { readonly api: number; readonly clickhouse: number },
) {
  const read = () => ({
    api: residentBytesOf(pids.api),
    clickhouse: residentBytesOf(pids.clickhouse),
  });
  const before = read();
  const samples: MemorySample[] = [];
  const state = { rows: 0, statement: 0, isOver: false };
  const work = (async () => {
    for (; !state.isOver; await sleep(SAMPLE_MS)) {
      samples.push({ rows: state.rows, ...read() });
      state.statement = Math.max(state.statement, await table.statementBytes());
    }
  })();
  return {
    note(rows: number): void {
      state.rows = rows;
    },
    async stop() {
      state.isOver = true;
      await work;
      return { before, samples, statement: state.statement };
    },
  };
}
