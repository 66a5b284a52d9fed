import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';

/** State of the generator, as reported by streams and verdicts. */
export interface GeneratorState {
  readonly state: 'alive' | 'silent' | 'never';
  readonly last_received_at: string | null;
  readonly age_ms: number | null;
  /** After this time without a pill, the state is `silent`. */
  readonly late_after_ms: number;
  /** Whether any market of the generator's symbols is open; null without a calendar. */
  readonly in_session: boolean | null;
}

/** Derives the state of the generator from the receive time of its last pill. */
export function generatorState(
  {
    lastReceivedAt,
    lateAfterMs,
    isInSession,
  }: {
    /** Receive time of the last pill of any symbol except test symbols. */
    readonly lastReceivedAt: Micros | undefined;
    readonly lateAfterMs: number;
    readonly isInSession: boolean | undefined;
  },
  now: Micros,
): GeneratorState {
  const rest = { late_after_ms: lateAfterMs, in_session: isInSession ?? null };
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
