import type { Venue } from './venue.ts';
import type { Hours, VenueDays } from './venue-days.ts';

/**
 * `holiday`: a weekday without a session, from local midnight to midnight; `closed`: outside hours,
 * or a weekend; `unknown`: before or after the range of the calendar.
 */
export type MarketState = 'open' | 'lunch_break' | 'closed' | 'holiday' | 'unknown';

/** A venue's calendar, queried by calendar.ts. Times are Unix milliseconds, ascending. */
export interface Calendar {
  readonly venue: Venue;
  /** IANA name. */
  readonly timezone: string;
  /** Last local day in the calendar, ISO 8601. */
  readonly until: string;
  /** `states[i]` holds from `times[i]`; neighbours differ; the last is `unknown`. */
  readonly times: Float64Array;
  readonly states: readonly MarketState[];
  readonly sessions: readonly Session[];
  /** Local midnight before and after each session. */
  readonly sessionStarts: Float64Array;
  readonly sessionEnds: Float64Array;
}

export interface Session {
  /** Local, ISO 8601. */
  readonly date: string;
  /** Whether the session ends earlier than the weekday's ordinary hours. */
  readonly halfDay: boolean;
}

type Period = readonly [startMinute: number, endMinute: number];

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** 1970-01-01 was a Thursday; 0 is Monday. */
const EPOCH_WEEKDAY = 3;

/** Builds the timeline of a venue's days. `overrides`, by local date, take precedence. */
export function buildCalendar(
  days: VenueDays,
  overrides: Readonly<Record<string, Hours>> = {},
): Calendar {
  const times: number[] = [];
  const states: MarketState[] = [];
  const add = (at: number, state: MarketState) => {
    // The start of a day replaces the end of the day before: FX trades through midnight.
    if (times.at(-1) === at) {
      times.pop();
      states.pop();
    }
    if (states.at(-1) === state) return;
    times.push(at);
    states.push(state);
  };
  const sessions: (Session & { readonly start: number; readonly end: number })[] = [];
  const offsetOn = stepsByDay(days.utc_offset_minutes);
  const weekOn = stepsByDay(days.week);
  const closed = new Set(days.closed);
  const toPeriods = createPeriodReader();
  const midnight = (day: number) => day * DAY_MS - offsetOn(day) * MINUTE_MS;

  const last = toDay(days.until);
  for (let day = toDay(days.from); day <= last; day += 1) {
    const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
    const weekday = (day + EPOCH_WEEKDAY) % 7;
    const week = weekOn(day);
    const ordinary = closed.has(date) ? 'closed' : (week[weekday] ?? 'closed');
    const periods = toPeriods(overrides[date] ?? days.special[date] ?? ordinary);
    const start = midnight(day);
    // Minutes count from the offset at noon: no venue trades in the hour of a clock change.
    if (periods.length === 0) {
      add(start, weekday < 5 ? 'holiday' : 'closed');
      continue;
    }
    if (periods[0]![0] > 0) add(start, 'closed');
    for (const [index, [opens, closes]] of periods.entries()) {
      add(start + opens * MINUTE_MS, 'open');
      add(start + closes * MINUTE_MS, index < periods.length - 1 ? 'lunch_break' : 'closed');
    }
    // A session on a weekend is compared with Monday.
    const usualEnd = toPeriods(week[weekday] ?? week[0]!).at(-1)![1];
    const halfDay = periods.at(-1)![1] < usualEnd;
    sessions.push({ date, halfDay, start, end: midnight(day + 1) });
  }
  add(midnight(last + 1), 'unknown');
  return {
    venue: days.venue,
    timezone: days.timezone,
    until: days.until,
    times: Float64Array.from(times),
    states,
    sessions: sessions.map(({ date, halfDay }) => ({ date, halfDay })),
    sessionStarts: Float64Array.from(sessions, ({ start }) => start),
    sessionEnds: Float64Array.from(sessions, ({ end }) => end),
  };
}

/**
 * `09:00-11:30 12:30-15:30` → minutes of the day; `closed` → none. Thousands of days share a few
 * hours, which are parsed once, because a calendar is built while the gateway serves.
 */
function createPeriodReader(): (hours: Hours) => readonly Period[] {
  const read = new Map<Hours, readonly Period[]>([['closed', []]]);
  return (hours) => {
    let periods = read.get(hours);
    if (periods === undefined) {
      periods = hours.split(' ').map((period): Period => {
        const [start, end] = period.split('-');
        return [toMinute(start!), toMinute(end!)];
      });
      read.set(hours, periods);
    }
    return periods;
  };
}

/** `09:30` → 570. */
export function toMinute(text: string): number {
  return Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
}

/** Days since 1970-01-01. */
function toDay(date: string): number {
  return Date.parse(date) / DAY_MS;
}

/** Finds the value in force on a day, given values by the day from which each applies. */
function stepsByDay<T>(steps: Readonly<Record<string, T>>): (day: number) => T {
  const values = Object.entries(steps).map(([date, value]) => ({ from: toDay(date), value }));
  return (day) => (values.findLast(({ from }) => from <= day) ?? values[0]!).value;
}
