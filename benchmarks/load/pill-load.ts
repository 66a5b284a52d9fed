import { setTimeout as sleep } from 'node:timers/promises';
import type { PillsLog } from '../harness/bench-pills.ts';
import { isOnTime, waitForArrivals } from '../harness/cells.ts';
import { meterCpu } from '../harness/cpu.ts';
import type { Percentiles, Spread } from '../harness/histogram.ts';
import { monotonicMicros, type Schedule } from '../harness/open-loop.ts';
import { startWorker } from '../harness/worker.ts';

/** How a load generator sends its pills. */
export interface LoadSetup {
  /** `http`: posts to ingest; `direct`: Avro to the pills topic; `log`: ids to `logTopic`. */
  readonly via: 'http' | 'direct' | 'log';
  readonly log: PillsLog;
  readonly symbols: readonly string[];
  readonly ingest?: string;
  readonly credential?: string | undefined;
  readonly connections?: number;
  /** A topic that no process of the platform reads. */
  readonly logTopic?: string;
}

/** One run; `run` begins every id, and the number of the pill follows. */
export interface PillRun extends Schedule {
  readonly run: string;
}

export interface LoadReport {
  /** Planned send to acknowledgement. */
  readonly acknowledged: Spread;
  /** How late pills were sent against the plan. */
  readonly lateness: Percentiles;
  /** Numbers of the pills without an acknowledgement, and the reasons, counted. */
  readonly failed: readonly number[];
  readonly failures: Readonly<Record<string, number>>;
  /** When each pill was acknowledged, in µs of the monotonic clock; 0 = never. */
  readonly answersMicros: ArrayLike<number>;
}

/** The readers of a run: sockets, a consumer of the log, or a receiver of webhooks. */
export interface Readers {
  begin(run: PillRun): unknown;
  /** Pills that arrived so far, each once a reader; those of `failed` do not count. */
  arrived(failed: readonly number[]): Promise<number> | number;
}

export type PillLoad = Awaited<ReturnType<typeof startLoad>>;

/** Between the order to run and the first planned pill. */
const HEAD_START_MS = 500;
/** A duplicate may still be in flight when the last first delivery has arrived. */
const DOUBLES_MS = 300;

/** Starts a load generator and warms it up. @throws the error of its warm-up */
export async function startLoad(setup: LoadSetup) {
  const worker = startWorker('load/pill-load-process');
  try {
    await worker.ask({ setup });
  } catch (error) {
    worker.stop();
    throw error;
  }
  return {
    pid: worker.pid,
    run: (run: PillRun) => worker.ask<LoadReport>({ run }),
    stop: worker.stop,
  };
}

let runs = 0;

/**
 * Sends pills in an open loop, and waits until the readers have them. CPU is counted from the first
 * planned pill to the last arrival.
 * @param options.perPill readers of a pill, on average
 * @param options.pids processes whose CPU is measured, beside the generator's
 * @param options.maxMs how long pills may arrive after the last send; `stallMs`: without a new one
 * @param options.beside runs beside the load; the wait for arrivals begins after it
 * @param options.idPadding makes ids, and with them pills, longer by this many characters
 */
export async function runPills(
  load: PillLoad,
  readers: Readers,
  options: {
    readonly perS: number;
    readonly pills: number;
    readonly perPill: number;
    readonly pids: Parameters<typeof meterCpu>[0];
    readonly maxMs: number;
    readonly stallMs?: number;
    readonly beside?: (() => Promise<unknown>) | undefined;
    readonly idPadding?: number | undefined;
  },
) {
  const { perS, pills, perPill, pids, maxMs, stallMs, beside, idPadding = 0 } = options;
  runs += 1;
  const name = `b${Date.now().toString(36)}n${runs}${'x'.repeat(idPadding)}`;
  const startMicros = monotonicMicros() + HEAD_START_MS * 1_000;
  const run: PillRun = { run: name, perS, pills, startMicros };
  await readers.begin(run);
  const sending = Promise.all([load.run(run), beside?.()]);
  sending.catch(() => undefined); // awaited below, after a pause
  await sleep((run.startMicros - monotonicMicros()) / 1_000);
  const meter = meterCpu({ ...pids, 'load generator': load.pid });
  const [sent] = await sending;
  const wanted = (pills - sent.failed.length) * perPill;
  await waitForArrivals(() => readers.arrived(sent.failed), wanted, { maxMs, stallMs });
  const cpu = meter();
  await sleep(DOUBLES_MS);
  return { run, sent, cpu, valid: isOnTime(sent.lateness) };
}

export function pillId(run: string, pill: number): string {
  return `${run}-${pill}`;
}

/** Number of a pill of this run, or -1 when it belongs to another one. */
export function pillNumber(run: string, id: string): number {
  if (!id.startsWith(run) || id[run.length] !== '-') return -1;
  const number = Number(id.slice(run.length + 1));
  return Number.isSafeInteger(number) ? number : -1;
}
