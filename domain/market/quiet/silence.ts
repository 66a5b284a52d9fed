import type { MarketState } from '../calendars/calendar.ts';

/** Reasons for the silence of a symbol. Part of the contract: never renamed. */
export const QUIET_REASONS = {
  never_seen: { meaning: 'No pill of the symbol was ever received.' },
  generator_late: {
    meaning: 'The market is open, and the silence exceeds max(5 s, 5 × the median cadence).',
  },
  lunch_break: { meaning: 'The market has its lunch break until `until`.' },
  market_closed: { meaning: 'The market is closed: outside trading hours, or at a weekend.' },
  holiday: { meaning: 'The market has no session on this weekday.' },
  calendar_unknown: {
    meaning: 'No calendar is known for the market, so lateness cannot be determined.',
  },
} as const satisfies Readonly<Record<string, { readonly meaning: string }>>;

export type QuietReason = keyof typeof QUIET_REASONS;

/** Current state of a market. Times are Unix ms. */
export interface MarketNow {
  readonly state: MarketState;
  /** Start of the state; undefined when the calendar does not contain it. */
  readonly sinceMs: number | undefined;
  /** Next open, unless the market is open; undefined when the calendar does not contain it. */
  readonly opensMs: number | undefined;
}

/** A market that never closes, used for `TEST:` symbols, which are active at weekends too. */
export const ALWAYS_OPEN: MarketNow = { state: 'open', sinceMs: undefined, opensMs: undefined };
/** A market without a calendar. */
export const NO_CALENDAR: MarketNow = { ...ALWAYS_OPEN, state: 'unknown' };

/** The silence of a symbol. Times are Unix ms. */
interface Silence {
  /** Receive time of the last live pill; undefined: none yet. */
  readonly lastAtMs: number | undefined;
  /** See `lateAfterMs` in cadence.ts. */
  readonly lateAfterMs: number;
  readonly market: MarketNow;
  /** Start of the current uninterrupted reception of pills; undefined: never interrupted. */
  readonly receivingSinceMs: number | undefined;
  readonly nowMs: number;
}

export interface Quiet {
  readonly reason: QuietReason;
  /** Start of the silence; undefined when there was no pill. */
  readonly sinceMs: number | undefined;
  /** When pills are expected again; undefined when unknown. */
  readonly untilMs: number | undefined;
}

export type Judged =
  | { readonly quiet: Quiet }
  /** The silence is too short so far: judge again at `askAtMs`. */
  | { readonly quiet: undefined; readonly askAtMs: number };

const REASONS: Readonly<Record<MarketState, QuietReason>> = {
  open: 'generator_late',
  lunch_break: 'lunch_break',
  closed: 'market_closed',
  holiday: 'holiday',
  unknown: 'calendar_unknown',
};

/**
 * Gives the reason why a symbol is silent, or the time to judge again. In a session, the silence
 * counts from the open. Outside a session, too, a symbol is quiet only after its usual cadence has
 * been exceeded, because some generators send at night.
 */
export function judgeSilence(silence: Silence): Judged {
  const { lastAtMs, lateAfterMs, market, receivingSinceMs, nowMs } = silence;
  if (lastAtMs === undefined) {
    return { quiet: { reason: 'never_seen', sinceMs: undefined, untilMs: undefined } };
  }
  const opened = market.state === 'open' ? market.sinceMs : undefined;
  const silentSinceMs = Math.max(lastAtMs, opened ?? lastAtMs);
  const askAtMs = Math.max(silentSinceMs, receivingSinceMs ?? silentSinceMs) + lateAfterMs;
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
