import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessSpec } from '../../deploy/local/processes.ts';
import type { ClickHouse } from '../../lib/clickhouse.ts';
import { nowMicros } from '../../lib/clock.ts';
import { type BenchProcess, type Surroundings, startBenchProcess } from '../bench-process.ts';
import { openPillSender } from '../pill-sender.ts';
import { cpuSecondsOf } from '../proc-stat.ts';
import { SYMBOLS, symbolOf } from './rows.ts';

/** How quickly the sink brings what is in the log into the table. */
export interface SinkRun {
  readonly rows: number;
  /** From the sink's first row in the table to its last. */
  readonly seconds: number;
  readonly rowsPerS: number;
  /** CPU µs a row of the sink's process, its start included; null where it cannot be read. */
  readonly cpuMicros: number | null;
}

const BATCH = 1_000;
/** The first rows, with the start of the process in them, are not counted. */
const WARM_SHARE = 0.1;
const STALLED_MS = 60_000;

/** Brings pills from the log into the table. */
export const SINK: ProcessSpec = {
  name: 'analytics',
  entry: 'pipelines/main.js',
  args: ['analytics'],
  metricsPort: 0,
};

/** Writes pills to the log, then starts the sink and watches the table. */
export async function measureSink(
  around: Surroundings,
  clickhouse: ClickHouse,
  pills: number,
  say: (line: string) => void,
): Promise<SinkRun> {
  say(`writing ${pills} pills to the log`);
  await writePills(around, pills);
  say('starting the sink');
  const sink: BenchProcess = await startBenchProcess(SINK, around);
  try {
    let last = 0;
    let movedAt = performance.now();
    let from: { readonly rows: number; readonly at: number } | undefined;
    for (;;) {
      const rows = await countRows(clickhouse);
      const now = performance.now();
      if (rows > last) movedAt = now;
      last = rows;
      if (from === undefined && rows >= pills * WARM_SHARE) from = { rows, at: now };
      if (rows >= pills) {
        const seconds = (now - from!.at) / 1_000;
        const cpuS = cpuSecondsOf(sink.pid);
        const counted = pills - from!.rows;
        return {
          rows: counted,
          seconds,
          rowsPerS: counted / seconds,
          cpuMicros: cpuS === null ? null : (cpuS * 1e6) / pills,
        };
      }
      if (now - movedAt > STALLED_MS) throw new Error(`The sink stands still at ${rows} rows.`);
      await sleep(50);
    }
  } finally {
    await sink.stop();
  }
}

async function writePills({ engines, namespace }: Surroundings, pills: number): Promise<void> {
  const sender = await openPillSender({ ...engines, namespace }, 5);
  try {
    for (let from = 0; from < pills; from += BATCH) {
      const timestamp = nowMicros();
      const { ok } = await sender.send(
        Array.from({ length: Math.min(BATCH, pills - from) }, (_, at) => ({
          id: `sink-${from + at}`,
          timestamp: timestamp + at,
          symbol: symbolOf((from + at) % SYMBOLS),
          gross_spread_percent: 0.1 + ((from + at) % 997) / 10_000,
          market_state: 'open',
          confidence: ((from + at) % 100) / 100,
        })),
      );
      if (ok !== Math.min(BATCH, pills - from)) throw new Error(`Pills were not taken: ${ok}`);
    }
  } finally {
    await sender.close();
  }
}

async function countRows(clickhouse: ClickHouse): Promise<number> {
  const answer = await clickhouse.query({
    query: 'SELECT count() AS n FROM pills',
    format: 'JSONEachRow',
  });
  const [row] = await answer.json<{ n: string }>();
  return Number(row!.n);
}
