import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMicros } from '../clock.ts';
import type { LoadPlan, LoadReport } from '../end-to-end/plan.ts';
import { cpuSecondsOf, cpuSecondsOfTree } from '../proc-stat.ts';
import type { ReceiverReport } from './receiver.ts';
import { type Deliveries, deliveriesOf } from './report.ts';
import type { Stage } from './stage.ts';

export interface RunOptions {
  readonly perS: number;
  readonly seconds: number;
  readonly endpoints: number;
  /** Endpoints, counted from the first, whose deliveries are judged; all unless said. */
  readonly judged?: number;
  /** How long what was sent may still arrive after it; 20 s unless said. */
  readonly arrivalsMaxMs?: number;
  /** Runs beside the load; what is sent arrives after it at the latest. */
  readonly beside?: () => Promise<void>;
}

/** One run of the load generator and what became of it. */
export interface WebhookRun extends Deliveries {
  readonly perS: number;
  readonly seconds: number;
  readonly endpoints: number;
  /** Most messages that were seen waiting for over a second in PostgreSQL, looked at each second. */
  readonly overdue: number;
  /** Pills that still waited in PostgreSQL at the end: late, but not lost. */
  readonly waitingPills: number;
  readonly waitingMessages: number;
  /** Cores that the dispatcher took, all its threads; null where unknown. */
  readonly dispatcherCores: number | null;
  readonly postgresCores: number | null;
}

/** A run with its raw parts. */
export interface RawRun {
  readonly run: WebhookRun;
  readonly plan: LoadPlan;
  readonly load: LoadReport;
  readonly report: ReceiverReport;
}

/** Between the order to run and the first planned pill. */
const HEAD_START_MICROS = 500_000;
const ARRIVALS_MAX_MS = 20_000;
/** A double may still be on its way when the last first one has come. */
const SETTLE_MS = 300;
const POLL_MS = 100;
const LOOK_MS = 1_000;

let runs = 0;

/** Sends pills to ingest in an open loop, and waits until all endpoints that are judged have them. */
export async function runPills(stage: Stage, options: RunOptions): Promise<RawRun> {
  const { perS, seconds, endpoints, judged = endpoints, beside } = options;
  const { receiver, load } = stage;
  runs += 1;
  const plan: LoadPlan = {
    ...stage.basePlan,
    ...{ run: `w${Date.now().toString(36)}n${runs}`, perS, pills: Math.round(perS * seconds) },
    startMicros: monotonicMicros() + HEAD_START_MICROS,
  };
  await receiver.begin({ run: plan.run, pills: plan.pills, endpoints });
  const cpuBefore = cpuOf(stage);
  const began = monotonicMicros();
  const watch = watchOverdue(stage);
  const [told] = await Promise.all([load.run(plan), beside?.()]);
  const wanted = (plan.pills - told.failed.length) * judged;
  const deadline = performance.now() + (options.arrivalsMaxMs ?? ARRIVALS_MAX_MS);
  while ((await receiver.progress()) < wanted && performance.now() < deadline) {
    await sleep(POLL_MS);
  }
  const cpuAfter = cpuOf(stage);
  const wallS = (monotonicMicros() - began) / 1e6;
  const overdue = await watch.close();
  await sleep(SETTLE_MS);
  const report = await receiver.report();
  // After the report: what arrives between the two is told as lost rather than hidden.
  const waiting = await stage.rows.waiting();
  const coresOf = (name: 'dispatcher' | 'postgres') => {
    const [before, after] = [cpuBefore[name], cpuAfter[name]];
    return before === null || after === null ? null : (after - before) / wallS;
  };
  const deliveries = deliveriesOf(plan, told, {
    ...{ ...report, endpoints: report.endpoints.slice(0, judged) },
  });
  // Where an endpoint is not judged, what waits is its own.
  const late = judged === endpoints ? Math.min(deliveries.lost, waiting.pills) : 0;
  const run: WebhookRun = {
    ...{ ...deliveries, lost: deliveries.lost - late, perS, seconds, endpoints, overdue },
    ...{ waitingPills: waiting.pills, waitingMessages: waiting.messages },
    ...{ dispatcherCores: coresOf('dispatcher'), postgresCores: coresOf('postgres') },
  };
  return { run, plan, load: told, report };
}

function cpuOf({ dispatcherPid, postgresPid }: Stage) {
  return { dispatcher: cpuSecondsOf(dispatcherPid), postgres: cpuSecondsOfTree(postgresPid) };
}

/** Messages that are joined are always kept first: those that stay there are what does not keep up. */
function watchOverdue({ rows }: Stage) {
  const closing = new AbortController();
  const { signal } = closing;
  let most = 0;
  const watching = (async () => {
    while (!signal.aborted) {
      most = Math.max(most, (await rows.waiting()).overdue);
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  })();
  watching.catch(() => undefined);
  return {
    async close() {
      closing.abort();
      await watching;
      return most;
    },
  };
}
