import { median } from '../median.ts';
import { type Deliveries, isWhole } from './report.ts';
import type { WebhookRun } from './run.ts';

export const GOALS = {
  /** `latency`, from ingest's answer. */
  latencyP99MaxMicros: 100_000,
  /** `fan`: what is slower is not sustained. */
  fanP99MaxMicros: 1_000_000,
  /** p99 of the others with a hanging neighbour ÷ without. */
  neighbourRatioMax: 1.1,
} as const;

/** Whether endpoints keep up: p99 within a second, and nothing waited in PostgreSQL or was lost. */
export function isSustained(run: Pick<WebhookRun, 'overdue' | 'lost' | 'sincePlanned'>): boolean {
  const { overdue, lost, sincePlanned } = run;
  return overdue === 0 && lost === 0 && sincePlanned.p99 <= GOALS.fanP99MaxMicros;
}

/** The sustained cell with the most messages a second; undefined where none is valid. */
export function bestOf(fan: readonly WebhookRun[]): WebhookRun | undefined {
  return fan
    .filter((run) => run.valid && isSustained(run))
    .sort((one, other) => other.deliveriesPerS - one.deliveriesPerS)[0];
}

/** One cell of `slow-neighbour`; the last endpoint is not judged in either. */
export interface NeighbourRun {
  readonly round: number;
  readonly hangs: boolean;
  readonly run: WebhookRun;
}

/** Medians of the rounds, p99 in µs from ingest's answer, of the endpoints that never hang. */
export interface NeighbourSummary {
  readonly healthyP99: number;
  readonly hangingP99: number;
  /** Hanging ÷ healthy. */
  readonly ratio: number;
  readonly valid: boolean;
}

export function summariseNeighbours(cells: readonly NeighbourRun[]): NeighbourSummary {
  const p99 = (hangs: boolean) =>
    median(cells.filter((cell) => cell.hangs === hangs).map(({ run }) => run.sinceAnswer.p99));
  const [healthyP99, hangingP99] = [p99(false), p99(true)];
  const valid = cells.every(({ run }) => run.valid && isWhole(run));
  return { healthyP99, hangingP99, ratio: hangingP99 / healthyP99, valid };
}

/** What is wrong with a run, or empty. */
export function faultOf(run: Deliveries): string {
  const faults = [
    run.valid ? '' : 'INVALID: over 10 ms late',
    run.notAcknowledged > 0 ? `${run.notAcknowledged} not acknowledged` : '',
    run.renamed > 0 ? `${run.renamed} under a second id` : '',
    run.forged > 0 ? `${run.forged} bad signatures` : '',
  ];
  return faults.filter((fault) => fault !== '').join(', ');
}
