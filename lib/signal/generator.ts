import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';

/** The generator as streams and verdicts tell it. */
export interface GeneratorState {
  readonly state: 'alive' | 'silent' | 'never';
  readonly last_received_at: string | null;
  readonly age_ms: number | null;
  /** Longer without a pill is `silent`. */
  readonly late_after_ms: number;
  /** Whether a market of what it sends is open; null where no calendar tells. */
  readonly in_session: boolean | null;
}

/** What the state of the generator follows from. */
export interface GeneratorSigns {
  /** When the last pill of any symbol but test ones was received. */
  readonly lastReceivedAt: Micros | undefined;
  readonly lateAfterMs: number;
  /** Whether a market of what it sends is open; undefined where no calendar tells. */
  readonly isInSession: boolean | undefined;
}

/** Whether the generator lives, from when its last pill was received. */
export function generatorState(signs: GeneratorSigns, now: Micros): GeneratorState {
  const { lastReceivedAt, lateAfterMs, isInSession = null } = signs;
  const rest = { late_after_ms: lateAfterMs, in_session: isInSession };
  if (lastReceivedAt === undefined) {
    return { state: 'never', last_received_at: null, age_ms: null, ...rest };
  }
  const ageMs = Math.max(0, Math.round((now - lastReceivedAt) / 1000));
  return {
    state: ageMs <= lateAfterMs ? 'alive' : 'silent',
    last_received_at: formatTimestamp(lastReceivedAt),
    age_ms: ageMs,
    ...rest,
  };
}
