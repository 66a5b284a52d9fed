import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLatencies, type Percentiles } from '../histogram.ts';
import { createTimeline, type Timeline, type TimelineSecond } from '../timeline.ts';
import { type LoadPlan, pillNumber, plannedMicros } from './plan.ts';

/** What the readers (sockets, or a consumer of the log) saw of a run. */
export interface WatchReport {
  /** Planned send to the pill in a reader's hands, over all readers. */
  readonly delivered: Percentiles;
  readonly deliveredEncoded: string;
  /** By the second in which a pill was planned. */
  readonly timeline: readonly TimelineSecond[];
  /** The p99 of each reader, in µs. */
  readonly p99ByReader: readonly number[];
  /** Acknowledged pills that a reader did not get, summed over the readers. */
  readonly lost: number;
  /** Pills that a reader got twice or more, summed over the readers. */
  readonly doubled: number;
  /** Frames of trouble (gap, error, drain) and closed sockets, counted. */
  readonly remarks: Readonly<Record<string, number>>;
  /** How late this process's own event loop was at the 99th percentile, in µs. */
  readonly eventLoopP99: number;
}

export interface Watch {
  /** Counts from now on for this run. */
  begin(plan: LoadPlan): void;
  /** Waits for what is on its way, then tells. `failed`: pills that nobody acknowledged. */
  end(failed: readonly number[]): Promise<WatchReport>;
  close(): Promise<void>;
}

/** Counts what readers get against the plan of a run. */
export interface Tally extends Omit<Watch, 'close'> {
  /** A reader got a pill. */
  take(reader: number, id: string, now: number): void;
  remark(what: string): void;
}

const ARRIVALS_MAX_MS = 5_000;

interface Run {
  readonly plan: LoadPlan;
  readonly all: ReturnType<typeof createLatencies>;
  readonly timeline: Timeline;
  readonly byReader: readonly ReturnType<typeof createLatencies>[];
  /** Times each pill was got, by reader. */
  readonly seen: readonly Uint8Array[];
  readonly remarks: Record<string, number>;
  readonly loop: ReturnType<typeof monitorEventLoopDelay>;
  arrived: number;
}

export function createTally(readers: number): Tally {
  let run: Run | undefined;
  return {
    remark(what) {
      if (run !== undefined) run.remarks[what] = (run.remarks[what] ?? 0) + 1;
    },
    take(reader, id, now) {
      if (run === undefined) return;
      const pill = pillNumber(run.plan.run, id);
      if (pill < 0 || pill >= run.plan.pills) return;
      const seen = run.seen[reader]!;
      seen[pill] = Math.min(255, seen[pill]! + 1);
      if (seen[pill] > 1) return;
      const planned = plannedMicros(run.plan, pill);
      const micros = now - planned;
      run.all.record(micros);
      run.timeline.record(planned, micros);
      run.byReader[reader]!.record(micros);
      run.arrived += 1;
    },
    begin(plan) {
      const loop = monitorEventLoopDelay({ resolution: 5 });
      loop.enable();
      run = {
        plan,
        all: createLatencies(),
        timeline: createTimeline(plan.startMicros),
        byReader: Array.from({ length: readers }, () => createLatencies()),
        seen: Array.from({ length: readers }, () => new Uint8Array(plan.pills)),
        remarks: {},
        loop,
        arrived: 0,
      };
    },
    async end(failed) {
      if (run === undefined) throw new Error('No run has begun.');
      const ended = run;
      const wanted = (ended.plan.pills - failed.length) * readers;
      const deadline = performance.now() + ARRIVALS_MAX_MS;
      const arrived = () => ended.arrived - arrivedOf(failed, ended);
      while (arrived() < wanted && performance.now() < deadline) await sleep(50);
      // A double may still be on its way when the last first one has come.
      await sleep(200);
      run = undefined;
      return reportOf(ended, failed);
    },
  };
}

/** What readers got of these pills all the same: a sender may fail after the log has a pill. */
function arrivedOf(pills: readonly number[], { seen }: Run): number {
  const got = (one: Uint8Array) => pills.filter((pill) => one[pill]! > 0).length;
  return seen.reduce((sum, one) => sum + got(one), 0);
}

function reportOf(run: Run, failed: readonly number[]): WatchReport {
  const notAcknowledged = new Set(failed);
  let lost = 0;
  let doubled = 0;
  for (const seen of run.seen) {
    for (const [pill, times] of seen.entries()) {
      if (times === 0 && !notAcknowledged.has(pill)) lost += 1;
      if (times > 1) doubled += 1;
    }
  }
  run.loop.disable();
  return {
    delivered: run.all.percentiles(),
    deliveredEncoded: run.all.encoded(),
    timeline: run.timeline.seconds(),
    p99ByReader: run.byReader.map((one) => one.percentiles().p99),
    lost,
    doubled,
    remarks: run.remarks,
    eventLoopP99: Math.round(run.loop.percentile(99) / 1000),
  };
}
