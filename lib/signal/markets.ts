import { isTestSymbol } from '../../schemas/pill.ts';
import {
  type Calendar,
  type MarketMoment,
  nextOpen,
  openCalendars,
  stateAt,
} from '../calendar/calendar.ts';
import type { Overrides } from '../calendar/overrides.ts';
import type { Venue } from '../calendar/venue.ts';
import { createVenueOf, NO_RULES, type Place, type VenueOf } from '../calendar/venue-rules.ts';
import { ALWAYS_OPEN, type MarketNow, NO_CALENDAR } from './silence.ts';

/** Venues now. Asked often: an answer is kept until the state changes. */
export interface Markets {
  /** The same object for as long as nothing of it changes. @param nowMs Unix ms */
  at(place: Place, nowMs: number): MarketNow;
  /** Of a symbol's venue; test symbols never close, others without a calendar are not known. */
  of(symbol: string, nowMs: number): MarketNow;
  /** Where a symbol trades, with the rules of VENUE_RULES. */
  readonly venueOf: VenueOf;
  /** All that a calendar says of a moment, the past too. @param tMs Unix ms */
  moment(venue: Venue, tMs: number): MarketMoment;
  calendar(venue: Venue): Calendar;
  /** Days that win over the calendars from now on, see overrides.ts. */
  override(overrides: Overrides): void;
}

/** An answer is looked up again after this, should the clock have been set. */
const KEPT_MS = 60_000;

/** Creates the markets. Calendars are read when their venue is first asked for. */
export function createMarkets(
  overrides: Overrides = {},
  venueOf: VenueOf = createVenueOf(NO_RULES),
): Markets {
  let calendarOf = openCalendars(overrides);
  const kept = new Map<Venue, { market: MarketNow; fromMs: number; untilMs: number }>();

  const at = (venue: Place, nowMs: number): MarketNow => {
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
    at,
    venueOf,
    moment: (venue, tMs) => stateAt(calendarOf(venue), tMs),
    calendar: (venue) => calendarOf(venue),
    of(symbol, nowMs) {
      const venue = venueOf(symbol);
      if (venue !== undefined) return at(venue, nowMs);
      return isTestSymbol(symbol) ? ALWAYS_OPEN : NO_CALENDAR;
    },
    override(next) {
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
