import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createLatencies, type Percentiles } from './histogram.ts';

/** When each send of an open loop is due: send i at start + i / rate, whatever happened before. */
export interface Schedule {
  /** First planned send, in µs of the machine's monotonic clock. */
  readonly startMicros: number;
  readonly perS: number;
  /** Number of sends; in most benchmarks a send is one pill. */
  readonly pills: number;
}

/**
 * Microseconds of the machine's monotonic clock. The value is the same in all processes of one
 * machine (CLOCK_MONOTONIC, mach_absolute_time), unlike `performance.now()`, which starts at 0.
 */
export function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** The moment at which a send is due; the schedule never waits for an answer. */
export function plannedMicros({ startMicros, perS }: Omit<Schedule, 'pills'>, pill: number) {
  return startMicros + (pill * 1e6) / perS;
}

/** How many sends are due at a moment, counted from the start of the schedule. */
export function dueCount({ startMicros, perS, pills }: Schedule, now: number): number {
  if (now < startMicros) return 0;
  return Math.min(pills, Math.floor(((now - startMicros) * perS) / 1e6) + 1);
}

/**
 * Calls `onDue` for every send when it is due. Sends that fall due while the event loop is busy
 * follow at once after it.
 * @param afterTick called after each burst of due sends
 * @returns how late the sends were against the schedule, in µs
 */
export async function runOpenLoop(
  schedule: Schedule,
  onDue: (pill: number) => void,
  afterTick: () => void = () => undefined,
): Promise<Percentiles> {
  const lateness = createLatencies();
  let next = 0;
  const onTick = () => {
    for (const due = dueCount(schedule, monotonicMicros()); next < due; next += 1) {
      lateness.record(monotonicMicros() - plannedMicros(schedule, next));
      onDue(next);
    }
    afterTick();
  };
  await runPacer(schedule, onTick);
  for (; next < schedule.pills; await sleep(1)) onTick();
  return lateness.percentiles();
}

// A Node timer fires on whole milliseconds: 0.5 to 1.1 ms late on average, as much as a pill takes
// end to end. A thread that sleeps on a futex wakes within some 0.1 ms and burns no core.
const PACER = `
  const { parentPort, workerData: { startMicros, perS, pills } } = require('node:worker_threads');
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
  for (let tick = 0; tick < pills; tick += 1) {
    const wait = (startMicros + tick * 1e6 / perS) / 1000 - nowMs();
    if (wait > 0) Atomics.wait(cell, 0, 0, wait);
    parentPort.postMessage(tick);
  }
`;

/** Calls `onTick` at every planned moment, or as soon as the main thread is free after it. */
function runPacer(schedule: Schedule, onTick: () => void): Promise<void> {
  const worker = new Worker(PACER, { eval: true, workerData: schedule });
  worker.on('message', onTick);
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => resolve());
  });
}
