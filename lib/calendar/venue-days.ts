import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../root.ts';
import type { Venue } from './venue.ts';

const FOLDER = path.join(packageRoot, 'lib', 'calendar', 'data');

/**
 * Hours of a day in the venue's local time: its periods with a break between, such as
 * `09:00-11:30 12:30-15:30`, or `closed`. `24:00` is the end of the day.
 */
export type Hours = string;

/** Days of one venue as `generate.py` writes them (data/*.json). Dates are local, ISO 8601. */
export interface VenueDays {
  readonly venue: Venue;
  /** IANA name. */
  readonly timezone: string;
  readonly source: string;
  /** First and last day that is known. */
  readonly from: string;
  readonly until: string;
  /** Offset from UTC in minutes at noon, by the day from which it holds; in order. */
  readonly utc_offset_minutes: Readonly<Record<string, number>>;
  /** Ordinary hours, Monday to Friday, by the day from which they hold; in order. */
  readonly week: Readonly<Record<string, readonly Hours[]>>;
  /** Weekdays without a session. */
  readonly closed: readonly string[];
  /** Other hours than the ordinary ones, and sessions on weekends. */
  readonly special: Readonly<Record<string, Hours>>;
}

/** @throws when the file is not there. */
export function readVenueDays(venue: Venue): VenueDays {
  return JSON.parse(readFileSync(path.join(FOLDER, `${venue}.json`), 'utf8'));
}
