import { setTimeout as sleep } from 'node:timers/promises';
import { isOnTime, LATE_NOTE, noteOf } from '../harness/cells.ts';
import type { Schedule } from '../harness/open-loop.ts';
import { judgeArrivals } from '../load/deliveries.ts';
import { type LoadReport, runPills } from '../load/pill-load.ts';
import type { EndpointArrivals } from './arrivals.ts';
import type { ReceiverReport } from './receiver-process.ts';
import type { WebhookStage } from './webhook-stage.ts';

/** One run of the load generator, and the outcome of its pills. */
export type WebhookRun = Awaited<ReturnType<typeof postPills>>['run'];

const ARRIVALS_MAX_MS = 20_000;
const OVERDUE_CHECK_MS = 1_000;

/**
 * Sends pills to ingest in an open loop, and waits until all judged endpoints have them.
 * @param options.judged endpoints, counted from the first, whose deliveries are judged
 * @param options.maxMs how long pills may still arrive after the last send
 * @param options.beside runs beside the load; the wait for arrivals begins after it
 */
export async function postPills(
  stage: WebhookStage,
  options: {
    readonly perS: number;
    readonly seconds: number;
    readonly endpoints: number;
    readonly judged?: number;
    readonly maxMs?: number;
    readonly beside?: () => Promise<void>;
  },
) {
  const { perS, seconds, endpoints, judged = endpoints, maxMs = ARRIVALS_MAX_MS } = options;
  const { receiver, load, pids } = stage;
  const readers = {
    begin: (run: Parameters<typeof load.run>[0]) => receiver({ begin: { run, endpoints } }),
    arrived: async () => (await receiver({})).pills,
  };
  const watch = watchOverdue(stage);
  const { run, sent, cpu } = await runPills(load, readers, {
    ...{ perS, pills: Math.round(perS * seconds), perPill: judged, pids, maxMs },
    beside: options.beside,
  }).finally(watch.stop);
  const report = await receiver({ isLast: true });
  // After the report: arrivals between the two count as lost rather than being hidden.
  const waiting = await stage.waiting();
  const deliveries = deliveriesOf(run, sent, {
    ...report,
    endpoints: report.endpoints.slice(0, judged),
  });
  // Where an endpoint is not judged, the waiting pills are its own.
  const late = judged === endpoints ? Math.min(deliveries.lost, waiting.pills) : 0;
  const posted = {
    ...deliveries,
    lost: deliveries.lost - late,
    ...{ perS, seconds, endpoints },
    /** The most messages that were seen waiting for over a second in PostgreSQL. */
    overdue: await watch.most(),
    /** Still waiting in PostgreSQL at the end: late, but not lost. */
    waitingMessages: waiting.messages,
    dispatcherCores: cpu.coresOf('dispatcher'),
    postgresCores: cpu.coresOf('postgres'),
  };
  return { run: posted, accepted: report.endpoints.flatMap((one) => one.accepted) };
}

/** Joined messages are always stored first: only messages that stay stored are overdue. */
function watchOverdue({ waiting }: WebhookStage) {
  const closing = new AbortController();
  const { signal } = closing;
  const watching = (async () => {
    let most = 0;
    while (!signal.aborted) {
      most = Math.max(most, (await waiting()).overdue);
      await sleep(OVERDUE_CHECK_MS, undefined, { signal }).catch(() => undefined);
    }
    return most;
  })();
  watching.catch(() => undefined);
  return { stop: () => closing.abort(), most: () => watching };
}

/** Judges the arrivals at the endpoints by the schedule and by the responses of ingest. */
export function deliveriesOf(
  schedule: Schedule,
  sent: Pick<LoadReport, 'acknowledged' | 'lateness' | 'failed' | 'answersMicros'>,
  { endpoints, verified, forged }: Pick<ReceiverReport, 'endpoints' | 'verified' | 'forged'>,
) {
  const sum = (of: (one: EndpointArrivals) => number) =>
    endpoints.reduce((all, one) => all + of(one), 0);
  const accepted = endpoints.flatMap((one) => one.accepted);
  const lastMicros = accepted.reduce((last, { atMicros }) => Math.max(last, atMicros), 0);
  const seconds = Math.max(1e-6, (lastMicros - schedule.startMicros) / 1e6);
  return {
    pills: schedule.pills,
    valid: isOnTime(sent.lateness),
    acknowledged: sent.acknowledged,
    lateness: sent.lateness,
    /** To the first attempt at an endpoint; `lost` and `doubled` over all endpoints. */
    ...judgeArrivals(schedule, sent, endpoints),
    notAcknowledged: sent.failed.length,
    doubledIds: sum((one) => one.doubledIds),
    /** Pills that arrived under a second id: no receiver can recognise these. */
    renamed: sum((one) => one.renamed),
    /** Messages that were posted, that were accepted, and that were accepted with several pills. */
    attempts: sum((one) => one.attempts),
    accepted: accepted.length,
    joined: accepted.filter(({ pills }) => pills > 1).length,
    /** From the first planned send to the last arrival. */
    deliveriesPerS: accepted.length / seconds,
    pillsPerS: sum((one) => one.pills) / seconds,
    verified,
    forged,
  };
}

export type Deliveries = ReturnType<typeof deliveriesOf>;

/** Whether nothing was lost or doubled, and every sampled signature was good. */
export function isWhole(run: Deliveries): boolean {
  const { lost, doubled, renamed, forged, verified, notAcknowledged } = run;
  return lost + doubled + renamed + forged + notAcknowledged === 0 && verified > 0;
}

export function faultOf(run: WebhookRun): string {
  return noteOf(
    run.valid ? '' : LATE_NOTE,
    run.notAcknowledged > 0 ? `${run.notAcknowledged} not acknowledged` : '',
    run.renamed > 0 ? `${run.renamed} under a second id` : '',
    run.forged > 0 ? `${run.forged} bad signatures` : '',
  );
}
