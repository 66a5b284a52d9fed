import type { Percentiles } from '../histogram.ts';

/** One run of the load generator, told to it by its parent. */
export interface LoadPlan {
  /** `http`: posts to ingest; `direct`: Avro to the topic; `log`: ids to `logTopic`. */
  readonly via: 'log' | 'http' | 'direct';
  /** Begins every id; then comes the pill's number. */
  readonly run: string;
  readonly perS: number;
  readonly pills: number;
  readonly symbols: readonly string[];
  /** Moment of the first pill, in µs of the machine's monotonic clock. */
  readonly startMicros: number;
  readonly ingest: string;
  readonly credential: string | undefined;
  readonly connections: number;
  readonly kafka: string;
  readonly registry: string;
  readonly namespace: string;
  /** Where `log` writes: a topic that nothing of the platform reads. */
  readonly logTopic: string;
  /** Whether the report is to say of each pill when it was acknowledged. */
  readonly tellsAnswers?: boolean;
}

/** What the load generator saw of its run. */
export interface LoadReport {
  /** Planned send to acknowledgement. */
  readonly acknowledged: Percentiles;
  readonly acknowledgedEncoded: string;
  /** How late pills were sent against the plan. */
  readonly lateness: Percentiles;
  /** Pills sent more than `LATE_MICROS` after their plan. */
  readonly late: number;
  /** Numbers of the pills without an acknowledgement. */
  readonly failed: readonly number[];
  /** Why, counted. */
  readonly failures: Readonly<Record<string, number>>;
  /** By number of the pill, µs of the monotonic clock; 0 = not; empty unless the plan asks for it. */
  readonly answersMicros: readonly number[];
}

/** From here on a send counts as late. */
export const LATE_MICROS = 1_000;
/** A run whose p99 of lateness is above this measures the generator: it is invalid. */
export const LATENESS_P99_MAX_MICROS = 10_000;

/** Moment at which a pill is due; the schedule never waits for an answer. */
export function plannedMicros(plan: Pick<LoadPlan, 'startMicros' | 'perS'>, pill: number): number {
  return plan.startMicros + (pill * 1e6) / plan.perS;
}

/** How many pills are due at a moment, all told. */
export function dueCount(
  plan: Pick<LoadPlan, 'startMicros' | 'perS' | 'pills'>,
  now: number,
): number {
  if (now < plan.startMicros) return 0;
  const due = Math.floor(((now - plan.startMicros) * plan.perS) / 1e6) + 1;
  return Math.min(plan.pills, due);
}

export function pillId(run: string, pill: number): string {
  return `${run}-${pill}`;
}

/** Number of a pill of this run, or -1 when it is another's. */
export function pillNumber(run: string, id: string): number {
  if (!id.startsWith(run) || id[run.length] !== '-') return -1;
  const number = Number(id.slice(run.length + 1));
  return Number.isSafeInteger(number) ? number : -1;
}
