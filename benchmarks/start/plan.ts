import { median } from '../median.ts';

/** `cold`: a data folder that did not exist; `warm`: the data of the start before. */
export type StartKind = 'cold' | 'warm';

/** What happens on the way, in this order. */
export const STEPS = ['build', 'engines', 'platform', 'socket', 'pill'] as const;
export type Step = (typeof STEPS)[number];

/** Moments of one start, ms from the command. */
export interface Moments {
  /** The launcher's first word: npm has checked the build. */
  readonly begun: number;
  /** All engines answer. */
  readonly enginesUp: number;
  /** The stack file is there: every process is ready. */
  readonly platformUp: number;
  /** A socket is subscribed to all symbols. */
  readonly socketLive: number;
  /** It has the first pill of the demo market. */
  readonly firstPill: number;
}

/** One start. Times in ms. */
export interface Start {
  readonly kind: StartKind;
  readonly round: number;
  readonly wholeMs: number;
  readonly steps: Readonly<Record<Step, number>>;
}

export function stepsOf(moments: Moments): Readonly<Record<Step, number>> {
  const { begun, enginesUp, platformUp, socketLive, firstPill } = moments;
  return {
    build: begun,
    engines: enginesUp - begun,
    platform: platformUp - enginesUp,
    socket: socketLive - platformUp,
    pill: firstPill - socketLive,
  };
}

/** Medians of the rounds. */
export interface StartSummary {
  readonly kind: StartKind;
  readonly rounds: number;
  readonly wholeMs: number;
  readonly wholeMinMs: number;
  readonly wholeMaxMs: number;
  readonly steps: Readonly<Record<Step, number>>;
}

export function summariseStarts(starts: readonly Start[]): StartSummary[] {
  return (['cold', 'warm'] as const).flatMap((kind) => {
    const own = starts.filter((start) => start.kind === kind);
    if (own.length === 0) return [];
    const wholes = own.map(({ wholeMs }) => wholeMs);
    const steps = STEPS.map((step) => [step, median(own.map((start) => start.steps[step]))]);
    return [
      {
        ...{ kind, rounds: own.length, wholeMs: median(wholes) },
        ...{ wholeMinMs: Math.min(...wholes), wholeMaxMs: Math.max(...wholes) },
        steps: Object.fromEntries(steps) as Record<Step, number>,
      },
    ];
  });
}
