/** Interval of its pills: one per step, step n at n × 500 ms after 1970-01-01T00:00:00Z. */
export const CHAOS_STEP_MS = 500;
/** The schedule repeats after this many steps: half a minute. */
export const CHAOS_CYCLE = 60;

/** The effect of a step besides its pill. Contract: README.md documents the same. */
export const CHAOS_STEPS = {
  pill: { meaning: 'One pill, whose `prev` is the one before.' },
  withhold: { meaning: 'The pill is not sent.' },
  gap: {
    meaning: 'A `gap` frame names the withheld pills, then the pill, whose `prev` was not sent.',
  },
  repeat: { meaning: 'The pill of the previous step again, same id and cursor, then the pill.' },
  late: { meaning: 'The pill has `late` and a timestamp 10 s old; `latest` mode leaves it out.' },
  drain: { meaning: 'The pill, then a `drain` frame.' },
  close_4000: { meaning: 'The pill, a heartbeat, close code 4000.' },
  close_4001: { meaning: 'The pill, an `error` frame `slow_consumer`, close code 4001.' },
} as const satisfies Readonly<Record<string, { readonly meaning: string }>>;

export type ChaosStep = keyof typeof CHAOS_STEPS;

/** Steps by the remainder of the pill's offset modulo 60; all others are `pill`. */
export const CHAOS_SCHEDULE: Readonly<Record<number, ChaosStep>> = {
  10: 'withhold',
  11: 'withhold',
  12: 'withhold',
  13: 'gap',
  20: 'repeat',
  30: 'late',
  40: 'drain',
  44: 'close_4000',
  55: 'close_4001',
};

/** @param step whole number, also the offset of the step's pill */
export function chaosStepAt(step: number): ChaosStep {
  return CHAOS_SCHEDULE[step % CHAOS_CYCLE] ?? 'pill';
}
