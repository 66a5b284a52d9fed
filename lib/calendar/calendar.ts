import { buildCalendar, type Calendar, type MarketState } from './build.ts';
import type { Overrides } from './overrides.ts';
import type { Venue } from './venue.ts';
import { readVenueDays } from './venue-days.ts';

export type { Calendar, MarketState } from './build.ts';

/** A venue at one moment. Times are Unix milliseconds. Unscheduled halts are not seen. */
export interface MarketMoment {
  readonly state: MarketState;
  /** Since when; undefined before the calendar, and where it begins with this state. */
  readonly since: number | undefined;
  /** When the state changes next; undefined where the calendar ends first. */
  readonly until: number | undefined;
  /** The change at `until`. */
  readonly next: { readonly at: number; readonly state: MarketState } | undefined;
  /** Local date, where it has a session (also before its open and after its close). */
  readonly sessionDate: string | undefined;
  /** That session ends earlier than ordinary. */
  readonly halfDay: boolean;
  readonly timezone: string;
  /** Last local day that the calendar knows. */
  readonly calendarUntil: string;
}

/**
 * Calendars by venue, each read and built when it is first asked for (some milliseconds).
 * @param overrides see overrides.ts.
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

/** The state at `tMs` (Unix ms). A change counts from its very millisecond: open at 09:00:00.000. */
export function stateAt(calendar: Calendar, tMs: number): MarketMoment {
  const { times, states, timezone } = calendar;
  const index = lastNotAfter(times, tMs);
  const after = index + 1 < times.length ? states[index + 1]! : 'unknown';
  // The first state may be older than the calendar, the last known one may outlive it.
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

/** When trading next begins after `tMs` (Unix ms); undefined where the calendar does not know. */
export function nextOpen(calendar: Calendar, tMs: number): number | undefined {
  const { times, states } = calendar;
  const now = lastNotAfter(times, tMs);
  const index = now < 0 ? -1 : states.indexOf('open', now + 1);
  return index < 0 ? undefined : times[index];
}

function sessionAt(calendar: Calendar, tMs: number) {
  const index = lastNotAfter(calendar.sessionStarts, tMs);
  return index >= 0 && tMs < calendar.sessionEnds[index]! ? calendar.sessions[index] : undefined;
}

/** Index of the last time ≤ `tMs`; -1 if none. NaN finds none. */
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
