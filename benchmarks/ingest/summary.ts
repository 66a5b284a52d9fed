import { failedOf } from '../http-load/plan.ts';
import { median } from '../median.ts';
import type { IngestRun } from './run.ts';
import { GOALS, type TargetName } from './targets.ts';

/** What the rounds of the closed loop say of one target; ratios are to the echo of the round. */
export interface TargetSummary {
  readonly target: TargetName;
  /** Medians of the rounds. */
  readonly pillsPerS: number;
  readonly ratio: number;
  readonly ratioMin: number;
  readonly ratioMax: number;
  /** CPU µs a pill: of the server, the broker, the load client; null where unknown. */
  readonly serverMicros: number | null;
  readonly brokerMicros: number | null;
  readonly clientMicros: number;
  /** Share of one core that the server took; well below 1 it was not what limited the rate. */
  readonly serverCores: number | null;
  readonly otherCores: number;
  /** Requests that were not answered as they should, over all rounds. */
  readonly failed: number;
}

export function summarise(
  rounds: readonly (readonly IngestRun[])[],
  target: TargetName,
): TargetSummary {
  const of = (runs: readonly IngestRun[], name: TargetName) =>
    runs.find((run) => run.target === name)!;
  const own = rounds.map((runs) => of(runs, target));
  const ratios = rounds.map((runs) => of(runs, target).pillsPerS / of(runs, 'echo').pillsPerS);
  const micros = (cpuS: (run: IngestRun) => number | null) =>
    medianOfKnown(own.map((run) => perPill(cpuS(run), run.pills)));
  return {
    target,
    pillsPerS: median(own.map(({ pillsPerS }) => pillsPerS)),
    ratio: median(ratios),
    ratioMin: Math.min(...ratios),
    ratioMax: Math.max(...ratios),
    serverMicros: micros((run) => run.serverCpuS),
    brokerMicros: micros((run) => run.brokerCpuS),
    clientMicros: micros((run) => run.load.cpuS) ?? 0,
    serverCores: medianOfKnown(
      own.map(({ serverCpuS, load }) => (serverCpuS === null ? null : serverCpuS / load.seconds)),
    ),
    otherCores: median(own.map(({ otherCores }) => otherCores)),
    failed: own.reduce((sum, { load }) => sum + failedOf(load), 0),
  };
}

/** What a target is to reach, and whether it did; empty where it has no goal. */
export function verdictOf({ target, ratio, pillsPerS }: TargetSummary): string {
  const told = (isKept: boolean) => (isKept ? 'kept' : 'MISSED');
  if (target === 'ours') return `≥ ${GOALS.ratioMin} × echo: ${told(ratio >= GOALS.ratioMin)}`;
  if (target !== 'batch') return '';
  const goal = GOALS.batchPillsPerSMin;
  return `≥ ${goal.toLocaleString('en')} pills/s: ${told(pillsPerS >= goal)}`;
}

function perPill(cpuS: number | null, pills: number): number | null {
  return cpuS === null ? null : (cpuS * 1e6) / pills;
}

function medianOfKnown(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : median(known);
}
