import { isTestSymbol } from '../../../schemas/pill.ts';
import { type Calendar, nextOpen, openCalendars, stateAt } from '../calendars/calendar.ts';
import type { Overrides } from '../calendars/overrides.ts';
import type { Venue } from '../calendars/venue.ts';
import {
  createVenueOf,
  NO_RULES,
  type TradingVenue,
  type VenueOf,
} from '../calendars/venue-rules.ts';
import { ALWAYS_OPEN, type MarketNow, NO_CALENDAR } from './silence.ts';

export type Markets = ReturnType<typeof createMarkets>;

/** A cached answer expires after this time, in case the clock was set. */
const KEPT_MS = 60_000;

/**
 * The current states of the venues. Called often: an answer is cached until the state changes. A calendar
 * is read at the first use of its venue.
 */
export function createMarkets(
  overrides: Overrides = {},
  venueOf: VenueOf = createVenueOf(NO_RULES),
) {
  let calendarOf = openCalendars(overrides);
  const kept = new Map<Venue, { market: MarketNow; fromMs: number; untilMs: number }>();

  const at = (venue: TradingVenue, nowMs: number): MarketNow => {
    if (venue === 'ALWAYS') return ALWAYS_OPEN;
    const last = kept.get(venue);
    if (last !== undefined && nowMs >= last.fromMs && nowMs < last.untilMs) return last.market;
    const found = look(calendarOf(venue), nowMs);
    const market =
      last !== undefined && isSame(last.market, found.market) ? last.market : found.market;
    kept.set(venue, { market, fromMs: nowMs, untilMs: found.untilMs });
    return market;
  };
  return {
    /** @returns the same object for as long as its content is the same. @param nowMs Unix ms */
    at,
    /** Venue of a symbol, by the rules of VENUE_RULES. */
    venueOf,
    /** The calendar's full state at a moment, past or future. @param tMs Unix ms */
    moment: (venue: Venue, tMs: number) => stateAt(calendarOf(venue), tMs),
    calendar: (venue: Venue) => calendarOf(venue),
    /**
     * The state of a symbol's venue. Test symbols are always open; others without a calendar are
     * unknown.
     */
    of(symbol: string, nowMs: number): MarketNow {
      const venue = venueOf(symbol);
      if (venue !== undefined) return at(venue, nowMs);
      return isTestSymbol(symbol) ? ALWAYS_OPEN : NO_CALENDAR;
    },
    /** Replaces the overrides of the calendars, see overrides.ts. */
    override(next: Overrides): void {
      calendarOf = openCalendars(next);
      for (const last of kept.values()) last.untilMs = Number.NEGATIVE_INFINITY;
    },
  };
}

function look(calendar: Calendar, nowMs: number) {
  const { state, since: sinceMs, until } = stateAt(calendar, nowMs);
  const opensMs = state === 'open' || state === 'unknown' ? undefined : nextOpen(calendar, nowMs);
  const untilMs = Math.min(until ?? Number.POSITIVE_INFINITY, nowMs + KEPT_MS);
  return { market: { state, sinceMs, opensMs }, untilMs };
}

function isSame(one: MarketNow, other: MarketNow): boolean {
  return (
    one.state === other.state && one.sinceMs === other.sinceMs && one.opensMs === other.opensMs
  );
}
