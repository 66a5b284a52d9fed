import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../../lib/files/package-root.ts';
import type { Venue } from './venue.ts';

const FOLDER = path.join(packageRoot, 'domain/market/calendars/data');

/**
 * Hours of a day in the venue's local time: its periods, e.g. `09:00-11:30 12:30-15:30` with a break
 * between, or `closed`. `24:00` is the end of the day.
 */
export type Hours = string;

/** Days of one venue, as written by `generate.py` (data/*.json). Dates are local, ISO 8601. */
export interface VenueDays {
  readonly venue: Venue;
  /** IANA name. */
  readonly timezone: string;
  readonly source: string;
  /** First and last day of the calendar. */
  readonly from: string;
  readonly until: string;
  /** Offset from UTC in minutes at noon, by the day from which it applies; ascending. */
  readonly utc_offset_minutes: Readonly<Record<string, number>>;
  /** Ordinary hours, Monday to Friday, by the day from which they apply; ascending. */
  readonly week: Readonly<Record<string, readonly Hours[]>>;
  /** Weekdays without a session. */
  readonly closed: readonly string[];
  /** Days with hours other than the ordinary ones, and sessions on weekends. */
  readonly special: Readonly<Record<string, Hours>>;
}

/** @throws when the file does not exist. */
export function readVenueDays(venue: Venue): VenueDays {
  return JSON.parse(readFileSync(path.join(FOLDER, `${venue}.json`), 'utf8'));
}
