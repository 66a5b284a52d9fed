/** From the worst to the best: the first that applies is the verdict. */
export const VERDICTS = ['unknown', 'stale', 'disagrees', 'outlier', 'verified'] as const;
export type VerdictName = (typeof VERDICTS)[number];

/** What stands against a pill. Contract: codes are never renamed. */
export const REASONS = {
  no_pill: {
    verdict: 'unknown',
    meaning: 'No pill of the symbol was ever received.',
    remedy: 'Compare the symbol with GET /api/symbols.',
  },
  id_not_found: {
    verdict: 'unknown',
    meaning: 'No pill with this id was published up to `position`. The search covered all of them.',
    remedy: 'Do not act on it: it is not ours. If it was just sent, ask again in a second.',
  },
  search_incomplete: {
    verdict: 'unknown',
    meaning: 'The id was not found, and a part of the pills could not be searched.',
    remedy: 'Ask again at `valid_until`; until then nobody knows whether it was published.',
  },
  log_unavailable: {
    verdict: 'unknown',
    meaning: 'This server does not reach the log: newer pills may exist.',
    remedy: 'Ask again at `valid_until`; GET /api/status says how the log is.',
  },
  view_behind: {
    verdict: 'unknown',
    meaning: 'This server has not caught up with the log: newer pills exist, or may.',
    remedy: 'Ask again at `valid_until`.',
  },
  venue_unknown: {
    verdict: 'unknown',
    meaning: 'No calendar is known for the symbol, so nobody can say whether its market is open.',
    remedy: 'Ask the operator to name its venue in VENUE_RULES.',
  },
  calendar_ended: {
    verdict: 'unknown',
    meaning: 'Now, or the time of the pill, lies outside of what the calendar of the venue knows.',
    remedy: 'Decide by another calendar; for a time of now, tell the operator.',
  },
  pill_ahead: {
    verdict: 'unknown',
    meaning: 'The timestamp of the pill is ahead of our clock, so its age is not known.',
    remedy: 'Ask again at `valid_until`. If it stays so, the clock of the generator is wrong.',
  },
  spread_history_unavailable: {
    verdict: 'unknown',
    meaning: 'Earlier pills of the symbol cannot be read now, so its spread cannot be weighed.',
    remedy: 'Ask again at `valid_until`.',
  },
  spread_history_short: {
    verdict: 'unknown',
    meaning: 'The symbol has too few live pills to say what spread is usual.',
    remedy: 'Wait for `limits.spread_n_min` pills, or weigh the spread yourself.',
  },
  superseded: {
    verdict: 'stale',
    meaning: 'The symbol has a newer pill: that of `cursor`.',
    remedy: 'Ask by symbol alone: the newest pill is what one may act on.',
  },
  market_not_open: {
    verdict: 'stale',
    meaning: 'By its calendar the market of the symbol is not open now.',
    remedy: 'Wait until `valid_until`, when it opens. Unscheduled halts and openings are not seen.',
  },
  pill_outside_session: {
    verdict: 'stale',
    meaning: 'The pill is of a time when its market was not open.',
    remedy: 'Wait for a pill of the session.',
  },
  pill_too_old: {
    verdict: 'stale',
    meaning: 'The pill is older than `max_age_ms`: max(5 s, 5 × the median cadence of its symbol).',
    remedy: 'Wait for the next pill; a stream tells it at once.',
  },
  pill_backfill: {
    verdict: 'stale',
    meaning: 'The pill came more than the backfill age (60 s by default) after its timestamp.',
    remedy: 'Do not act on it; wait for a live pill.',
  },
  generator_silent: {
    verdict: 'stale',
    meaning: 'The generator has sent nothing of any symbol for longer than is usual.',
    remedy: 'Wait until `generator.state` is `alive` again.',
  },
  market_state_disagrees: {
    verdict: 'disagrees',
    meaning: '`market_state` says otherwise than the calendar at the time of the pill.',
    remedy: 'Do not act before you know which is right: it may be a halt, or a wrong clock.',
  },
  spread_outlier: {
    verdict: 'outlier',
    meaning: 'The spread is far from what the last 1,000 pills of the symbol have.',
    remedy: 'Look at the pill: `spread` says how far it is.',
  },
} as const satisfies Readonly<
  Record<
    string,
    {
      readonly verdict: Exclude<VerdictName, 'verified'>;
      readonly meaning: string;
      readonly remedy: string;
    }
  >
>;

export type ReasonCode = keyof typeof REASONS;

/** One thing that stands against a pill. */
export interface Reason {
  readonly code: ReasonCode;
  readonly detail: string;
  /** Of the newer pill that supersedes it. */
  readonly cursor?: string;
}

/** The first verdict that applies. */
export function verdictOf(reasons: readonly Reason[]): VerdictName {
  const found = new Set<VerdictName>(reasons.map(({ code }) => REASONS[code].verdict));
  return VERDICTS.find((verdict) => found.has(verdict)) ?? 'verified';
}
