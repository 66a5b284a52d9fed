import type { MarketState } from '../calendar/calendar.ts';

/** Why no pill of a symbol comes. Contract: never renamed. */
export const QUIET_REASONS = {
  never_seen: { meaning: 'No pill of the symbol was ever received.' },
  generator_late: {
    meaning: 'Its market is open, and the silence is longer than max(5 s, 5 × its median cadence).',
  },
  lunch_break: { meaning: 'Its market rests until `until`.' },
  market_closed: { meaning: 'Its market is closed: outside hours, or a weekend.' },
  holiday: { meaning: 'Its market has no session on this weekday.' },
  calendar_unknown: {
    meaning: 'No calendar tells whether its market is open, so nobody can say that it is late.',
  },
} as const satisfies Readonly<Record<string, { readonly meaning: string }>>;

export type QuietReason = keyof typeof QUIET_REASONS;

/** Where a symbol trades, at one moment. Times are Unix ms. */
export interface MarketNow {
  readonly state: MarketState;
  /** Since when; undefined where the calendar does not say. */
  readonly sinceMs: number | undefined;
  /** When it opens next, unless it is open; undefined where the calendar does not say. */
  readonly opensMs: number | undefined;
}

/** A market that never closes: that of `TEST:` symbols, which live at weekends too. */
export const ALWAYS_OPEN: MarketNow = { state: 'open', sinceMs: undefined, opensMs: undefined };
/** A market without a calendar. */
export const NO_CALENDAR: MarketNow = { ...ALWAYS_OPEN, state: 'unknown' };

/** What is known of a symbol that is silent. Times are Unix ms. */
export interface Silence {
  /** When its last live pill was received; undefined = never. */
  readonly lastAtMs: number | undefined;
  /** See `lateAfterMs` in cadence.ts. */
  readonly lateAfterMs: number;
  readonly market: MarketNow;
  /** Since when pills could have been heard without a break; undefined = all the time. */
  readonly hearingSinceMs: number | undefined;
  readonly nowMs: number;
}

export interface Quiet {
  readonly reason: QuietReason;
  /** Since when it holds; undefined where there was no pill. */
  readonly sinceMs: number | undefined;
  /** When pills are expected again; undefined where nobody knows. */
  readonly untilMs: number | undefined;
}

export type Judged =
  | { readonly quiet: Quiet }
  /** Not silent for long enough: ask again then. */
  | { readonly quiet: undefined; readonly askAtMs: number };

const REASONS: Readonly<Record<MarketState, QuietReason>> = {
  open: 'generator_late',
  lunch_break: 'lunch_break',
  closed: 'market_closed',
  holiday: 'holiday',
  unknown: 'calendar_unknown',
};

/**
 * Says why a symbol is silent, or when to ask again. In a session the silence counts from its
 * opening; out of one, too, a symbol is quiet only when its usual pace is broken, since some
 * generators send at night.
 */
export function judgeSilence(silence: Silence): Judged {
  const { lastAtMs, lateAfterMs, market, hearingSinceMs, nowMs } = silence;
  if (lastAtMs === undefined) {
    return { quiet: { reason: 'never_seen', sinceMs: undefined, untilMs: undefined } };
  }
  const opened = market.state === 'open' ? market.sinceMs : undefined;
  const silentSinceMs = Math.max(lastAtMs, opened ?? lastAtMs);
  const askAtMs = Math.max(silentSinceMs, hearingSinceMs ?? silentSinceMs) + lateAfterMs;
  if (nowMs < askAtMs) return { quiet: undefined, askAtMs };
  const reason = REASONS[market.state];
  const rests = market.state !== 'open' && market.state !== 'unknown';
  return {
    quiet: {
      reason,
      sinceMs: rests ? (market.sinceMs ?? lastAtMs) : silentSinceMs,
      untilMs: rests ? market.opensMs : undefined,
    },
  };
}
