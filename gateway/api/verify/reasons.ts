/** Objections to a pill, by verdict, worst first. Contract: codes are never renamed. */
export const REASONS = {
  unknown: {
    no_pill: 'No pill of the symbol was ever received.',
    id_not_found: 'No pill with this id was published up to `position`. The search was complete.',
    search_incomplete: 'The id was not found, but some pills could not be searched.',
    log_unavailable: 'This server cannot reach the log: newer pills may exist.',
    view_behind: 'This server has not caught up with the log: newer pills exist or may exist.',
    venue_unknown:
      'No calendar is known for the symbol, so it is unknown whether its market is open.',
    calendar_ended:
      'The calendar of the venue does not cover the current time, or the time of the pill.',
    pill_ahead: 'The timestamp of the pill is ahead of our clock, so its age is unknown.',
    spread_history_unavailable:
      'Earlier pills of the symbol cannot be read now, so its spread cannot be compared.',
    spread_history_too_short: 'The symbol has too few live pills to compare its spread with.',
  },
  stale: {
    superseded: 'The symbol has a newer pill, the one at `cursor`.',
    market_not_open: 'By its calendar, the market of the symbol is not open now.',
    pill_outside_session: 'The market was not open at the time of the pill.',
    pill_too_old:
      'The pill is older than `max_age_ms`: max(5 s, 5 × the median cadence of its symbol).',
    pill_backfill:
      'The pill was received more than the backfill age (60 s by default) after its timestamp.',
    generator_silent: 'The generator has sent no pill of any symbol for longer than usual.',
  },
  disagrees: {
    market_state_disagrees: '`market_state` contradicts the calendar at the time of the pill.',
  },
  outlier: {
    spread_outlier: 'The spread is far from those of the last 1,000 pills of the symbol.',
  },
} as const;

type Reasons = typeof REASONS;
export type ReasonCode = { [V in keyof Reasons]: keyof Reasons[V] }[keyof Reasons];
export type VerdictName = keyof Reasons | 'verified';

/** Worst first: the first that applies is the verdict. */
export const VERDICTS = [...Object.keys(REASONS), 'verified'] as readonly VerdictName[];

/** Every reason, with its verdict. */
export const REASON_LIST = Object.entries(REASONS).flatMap(([verdict, reasons]) =>
  Object.entries(reasons).map(([code, meaning]) => ({
    code: code as ReasonCode,
    verdict: verdict as VerdictName,
    meaning,
  })),
);
const VERDICT_OF = new Map(REASON_LIST.map(({ code, verdict }) => [code, verdict]));

/** One objection to a pill. */
export interface Reason {
  readonly code: ReasonCode;
  readonly detail: string;
  /** Cursor of the newer pill, with `superseded`. */
  readonly cursor?: string;
}

/** The first verdict that applies. */
export function verdictOf(reasons: readonly Pick<Reason, 'code'>[]): VerdictName {
  const found = new Set(reasons.map(({ code }) => VERDICT_OF.get(code)));
  return VERDICTS.find((verdict) => found.has(verdict)) ?? 'verified';
}
