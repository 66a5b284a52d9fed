import { toMinute } from './build.ts';
import { isObject, parseObject } from './settings-file.ts';
import { VENUES, type Venue } from './venue.ts';
import { type Hours, readVenueDays } from './venue-days.ts';

/** Hours that take precedence over a venue's calendar, by local date. */
export type Overrides = Readonly<Partial<Record<Venue, Readonly<Record<string, Hours>>>>>;

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$/;
const FIELDS = ['open', 'break_start', 'break_end', 'close'];

/**
 * Parses days that differ from the calendar (a typhoon, a late opening), in local dates and times of
 * the venue:
 *
 *     { "XHKG": { "2026-09-21": "closed",
 *                 "2026-09-22": { "open": "13:00", "close": "16:00" } },
 *       "XTKS": { "2026-10-01": { "open": "10:00", "break_start": "11:30",
 *                                 "break_end": "12:30", "close": "15:30" } } }
 *
 * An override replaces the whole day: without `break_start` and `break_end` there is no break. A day
 * on a weekend becomes a session. FX days run from 22:00 to 22:00 UTC (Etc/GMT-2). All faults are
 * reported together, each with its venue and day; never throws.
 */
export function parseOverrides(
  text: string,
):
  | { readonly ok: true; readonly overrides: Overrides }
  | { readonly ok: false; readonly faults: readonly string[] } {
  const parsed = parseObject(text, 'venues');
  if (!parsed.ok) return parsed;
  const faults: string[] = [];
  const overrides: Partial<Record<Venue, Record<string, Hours>>> = {};
  for (const [name, days] of Object.entries(parsed.value)) {
    const venue = VENUES.find((known) => known === name);
    if (venue === undefined) {
      faults.push(`${name}: unknown venue. Known venues: ${VENUES.join(', ')}.`);
    } else if (!isObject(days)) {
      faults.push(`${name}: must be an object of days.`);
    } else {
      const hours: Record<string, Hours> = {};
      for (const [date, day] of Object.entries(days)) {
        const read = findDateFault(venue, date) ?? readDay(day);
        if ('fault' in read) faults.push(`${venue} ${date}: ${read.fault}`);
        else hours[date] = read.hours;
      }
      overrides[venue] = hours;
    }
  }
  return faults.length === 0 ? { ok: true, overrides } : { ok: false, faults };
}

function findDateFault(venue: Venue, date: string): { fault: string } | undefined {
  const time = /^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(date) : Number.NaN;
  // Date.parse accepts 2026-02-30 as a day in March.
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== date) {
    return { fault: 'is not a date such as 2026-09-21.' };
  }
  const { from, until } = readVenueDays(venue);
  if (date >= from && date <= until) return undefined;
  return { fault: `is outside the venue's calendar, ${from} to ${until}.` };
}

function readDay(day: unknown): { readonly hours: Hours } | { readonly fault: string } {
  if (day === 'closed') return { hours: 'closed' };
  if (!isObject(day)) return { fault: 'must be "closed" or {"open": "09:30", "close": "12:00"}.' };
  const unknown = Object.keys(day).filter((name) => !FIELDS.includes(name));
  if (unknown.length > 0) {
    return { fault: `${unknown.join(', ')}: unknown. Known fields: ${FIELDS.join(', ')}.` };
  }
  if ((day.break_start === undefined) !== (day.break_end === undefined)) {
    return { fault: 'break_start and break_end must be given together.' };
  }
  const named = FIELDS.filter((name) => name in day || name === 'open' || name === 'close');
  const times = named.map((name) => day[name]);
  const bad = named.filter((_, index) => !isTime(times[index]));
  if (bad.length > 0) return { fault: `${bad.join(', ')}: must be a local time such as "09:30".` };
  const texts = times as string[];
  if (texts.some((text, index) => index > 0 && toMinute(text) <= toMinute(texts[index - 1]!))) {
    return { fault: `must be in this order: ${named.join(' < ')}.` };
  }
  const [open, second, third, close] = texts;
  return {
    hours: close === undefined ? `${open}-${second}` : `${open}-${second} ${third}-${close}`,
  };
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && TIME.test(value);
}
