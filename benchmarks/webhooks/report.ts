import {
  LATENESS_P99_MAX_MICROS,
  type LoadPlan,
  type LoadReport,
  plannedMicros,
} from '../end-to-end/plan.ts';
import { createLatencies, type Latencies, type Percentiles } from '../histogram.ts';
import { createTimeline, type TimelineSecond } from '../timeline.ts';
import type { ReceiverReport } from './receiver.ts';

/** Percentiles with the one of ten, in µs. */
export interface Spread extends Percentiles {
  readonly p90: number;
  readonly encoded: string;
}

/** What became of the pills of a run, over all its endpoints. */
export interface Deliveries {
  readonly pills: number;
  /** Planned send, and ingest's answer, to the first attempt at an endpoint. */
  readonly sincePlanned: Spread;
  readonly sinceAnswer: Spread;
  /** By the second in which a pill was planned. */
  readonly timeline: readonly TimelineSecond[];
  readonly acknowledged: Percentiles;
  readonly lateness: Percentiles;
  /** False where the generator was late itself: then the figures measure it. */
  readonly valid: boolean;
  readonly notAcknowledged: number;
  /** Acknowledged pills that an endpoint did not get, summed over the endpoints. */
  readonly lost: number;
  /** Pills that an endpoint accepted more than once, summed over the endpoints. */
  readonly doubled: number;
  /** Messages that were accepted more than once under one id. */
  readonly doubledIds: number;
  /** Pills that came under a second id: no receiver can tell these. */
  readonly renamed: number;
  /** Messages that were posted, and those that were accepted with several pills. */
  readonly attempts: number;
  readonly accepted: number;
  readonly joined: number;
  /** From the first planned send to the last arrival. */
  readonly deliveriesPerS: number;
  readonly pillsPerS: number;
  readonly verified: number;
  readonly forged: number;
}

type Told = Pick<LoadReport, 'acknowledged' | 'lateness' | 'failed' | 'answersMicros'>;

/** Judges what the receiver saw by what was planned and what ingest answered. */
export function deliveriesOf(
  plan: Pick<LoadPlan, 'startMicros' | 'perS' | 'pills'>,
  { acknowledged, lateness, failed, answersMicros }: Told,
  { endpoints, verified, forged }: ReceiverReport,
): Deliveries {
  const sincePlanned = createLatencies();
  const sinceAnswer = createLatencies();
  const timeline = createTimeline(plan.startMicros);
  let lost = 0;
  let doubled = 0;
  let arrived = 0;
  let lastMicros = plan.startMicros;
  for (const { firstMicros, acceptedMicros, acceptedTimes } of endpoints) {
    for (let pill = 0; pill < plan.pills; pill += 1) {
      const answered = answersMicros[pill] ?? 0;
      const first = firstMicros[pill]!;
      if (acceptedTimes[pill]! > 1) doubled += 1;
      if (acceptedTimes[pill] === 0 && answered > 0) lost += 1;
      if (acceptedTimes[pill]! > 0) arrived += 1;
      lastMicros = Math.max(lastMicros, acceptedMicros[pill]!);
      if (first === 0) continue;
      const planned = plannedMicros(plan, pill);
      sincePlanned.record(first - planned);
      timeline.record(planned, first - planned);
      if (answered > 0) sinceAnswer.record(first - answered);
    }
  }
  const seconds = Math.max(1e-6, (lastMicros - plan.startMicros) / 1e6);
  const sum = (of: (one: ReceiverReport['endpoints'][number]) => number) =>
    endpoints.reduce((total, one) => total + of(one), 0);
  const accepted = sum((one) => one.accepted.length);
  return {
    ...{ pills: plan.pills, acknowledged, lateness, lost, doubled, verified, forged, accepted },
    ...{ sincePlanned: spreadOf(sincePlanned), sinceAnswer: spreadOf(sinceAnswer) },
    timeline: timeline.seconds(),
    valid: lateness.p99 <= LATENESS_P99_MAX_MICROS,
    notAcknowledged: failed.length,
    doubledIds: sum((one) => one.doubledIds),
    renamed: sum((one) => one.renamed),
    attempts: sum((one) => one.attempts),
    joined: sum((one) => one.accepted.filter(({ pills }) => pills > 1).length),
    ...{ deliveriesPerS: accepted / seconds, pillsPerS: arrived / seconds },
  };
}

/** Whether a run lost nothing, doubled nothing, and every signature that was looked at was good. */
export function isWhole(run: Deliveries): boolean {
  const { lost, doubled, renamed, forged, verified, notAcknowledged } = run;
  return lost + doubled + renamed + forged + notAcknowledged === 0 && verified > 0;
}

function spreadOf(latencies: Latencies): Spread {
  return { ...latencies.percentiles(), p90: latencies.at(90), encoded: latencies.encoded() };
}
