import { buildCalendar, type Calendar, type MarketState } from './build.ts';
import type { Overrides } from './overrides.ts';
import type { Venue } from './venue.ts';
import { readVenueDays } from './venue-days.ts';

export type { Calendar, MarketState } from './build.ts';

/** State of a venue at one moment. Times are Unix milliseconds. Unscheduled halts are not known. */
export interface MarketMoment {
  readonly state: MarketState;
  /** Start of the state; undefined before the calendar, and when the calendar starts with it. */
  readonly since: number | undefined;
  /** Time of the next change of state; undefined when the calendar ends first. */
  readonly until: number | undefined;
  /** The change at `until`. */
  readonly next: { readonly at: number; readonly state: MarketState } | undefined;
  /** Local date, if it has a session (also before its open and after its close). */
  readonly sessionDate: string | undefined;
  /** Whether that session ends earlier than usual. */
  readonly halfDay: boolean;
  readonly timezone: string;
  /** Last local day of the calendar. */
  readonly calendarUntil: string;
}

/**
 * Calendars by venue, each built at its first use (some milliseconds).
 * @param overrides see overrides.ts
 */
export function openCalendars(overrides: Overrides = {}): (venue: Venue) => Calendar {
  const built = new Map<Venue, Calendar>();
  return (venue) => {
    let calendar = built.get(venue);
    if (calendar === undefined) {
      calendar = buildCalendar(readVenueDays(venue), overrides[venue]);
      built.set(venue, calendar);
    }
    return calendar;
  };
}

/** State at `tMs` (Unix ms). A change applies from its exact millisecond: open at 09:00:00.000. */
export function stateAt(calendar: Calendar, tMs: number): MarketMoment {
  const { times, states, timezone } = calendar;
  const index = lastNotAfter(times, tMs);
  const after = index + 1 < times.length ? states[index + 1]! : 'unknown';
  // The first state may have begun before the calendar; the last one may outlast it.
  const next =
    index < 0 || after === 'unknown' ? undefined : { at: times[index + 1]!, state: after };
  const session = sessionAt(calendar, tMs);
  return {
    state: states[index] ?? 'unknown',
    since: index <= 0 ? undefined : times[index],
    until: next?.at,
    next,
    sessionDate: session?.date,
    halfDay: session?.halfDay ?? false,
    timezone,
    calendarUntil: calendar.until,
  };
}

/** Next open after `tMs` (Unix ms); undefined beyond the calendar. */
export function nextOpen(calendar: Calendar, tMs: number): number | undefined {
  const { times, states } = calendar;
  const now = lastNotAfter(times, tMs);
  const index = now < 0 ? -1 : states.indexOf('open', now + 1);
  return index < 0 ? undefined : times[index];
}

/** For how long the venue is open from `fromMs` to `toMs` (Unix ms), as far as the calendar goes. */
export function openMsBetween(calendar: Calendar, fromMs: number, toMs: number): number {
  const { times, states } = calendar;
  let openMs = 0;
  for (let at = Math.max(0, lastNotAfter(times, fromMs)); (times[at] ?? toMs) < toMs; at += 1) {
    if (states[at] !== 'open') continue;
    openMs += Math.min(times[at + 1] ?? toMs, toMs) - Math.max(times[at]!, fromMs);
  }
  return openMs;
}

function sessionAt(calendar: Calendar, tMs: number) {
  const index = lastNotAfter(calendar.sessionStarts, tMs);
  return index >= 0 && tMs < calendar.sessionEnds[index]! ? calendar.sessions[index] : undefined;
}

/** Index of the last time ≤ `tMs`; -1 if there is none, or `tMs` is NaN. */
function lastNotAfter(times: Float64Array, tMs: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle]! <= tMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
