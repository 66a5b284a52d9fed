/** Times are microseconds since 1970-01-01T00:00:00Z, as a double: exact until the year 2255. */
export type Micros = number;

export type ParsedTimestamp =
  | { readonly ok: true; readonly micros: Micros }
  | { readonly ok: false; readonly code: TimestampFaultCode; readonly detail: string };

type TimestampFaultCode =
  | 'timestamp_malformed'
  | 'timestamp_no_zone'
  | 'timestamp_not_utc'
  | 'timestamp_too_precise'
  | 'timestamp_out_of_range';

const ISO = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:([.,])(\d+))?(.*)$/s;
const UTC_ZONE = /^(?:Z|\+00:00)$/;
const OFFSET_ZONE = /^(?:[+-]\d\d(?::?\d\d)?|z)$/;
const NO_ZONE_HINT =
  'The zone is missing. Python: datetime.now(timezone.utc).isoformat(); JavaScript: toISOString().';

/**
 * Parses an ISO 8601 date-time in UTC (`Z` or `+00:00`) with up to six decimals.
 * @returns microseconds since 1970, or a code and a hint how to correct the text
 */
export function parseTimestamp(text: string): ParsedTimestamp {
  const micros = readUsual(text);
  if (micros >= 0) return { ok: true, micros };
  const match = ISO.exec(text);
  if (match === null) {
    return fail('timestamp_malformed', hintForMalformed(text));
  }
  const [, year, month, day, hour, minute, second, mark, fraction = '', zone = ''] = match;
  if (text[10] !== 'T')
    return fail('timestamp_malformed', 'Put a capital T between date and time.');
  if (mark === ',') return fail('timestamp_malformed', 'Use a point before the decimals.');
  if (!UTC_ZONE.test(zone)) return failZone(zone);
  if (fraction.length > 6) {
    const hint = `${fraction.length} decimals; the finest unit is the microsecond: send at most six.`;
    return fail('timestamp_too_precise', hint);
  }
  if (+year! < 1970) return fail('timestamp_out_of_range', 'Times before 1970 are not accepted.');
  if (+year! > 2254) return fail('timestamp_out_of_range', 'Times after 2254 are not accepted.');
  const date = Date.UTC(+year!, +month! - 1, +day!, +hour!, +minute!, +second!);
  if (!isSameCivilTime(date, match)) {
    return fail('timestamp_malformed', 'No such date or time of day in the calendar.');
  }
  return { ok: true, micros: date * 1000 + Number(fraction.padEnd(6, '0')) };
}

/**
 * Parses the usual form, `YYYY-MM-DDThh:mm:ss[.f…]Z`, without the regular expression, which was 4 %
 * of the ingest process; measured 6 times as fast. @returns -1 for any other text, valid or not
 */
function readUsual(text: string): number {
  const { length } = text;
  if (length < 20 || length > 27 || length === 21) return -1;
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return -1;
  if (text.charCodeAt(10) !== 84 || text.charCodeAt(length - 1) !== 90) return -1;
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return -1;
  if (length > 20 && text.charCodeAt(19) !== 46) return -1;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  const hour = digits(text, 11, 13);
  const minute = digits(text, 14, 16);
  const second = digits(text, 17, 19);
  // Days after the 28th are left to the calendar.
  if (!(year >= 1970 && year <= 2254 && month >= 1 && month <= 12 && day >= 1 && day <= 28)) {
    return -1;
  }
  if (!(hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 && second <= 59)) {
    return -1;
  }
  let fraction = 0;
  if (length > 20) {
    fraction = digits(text, 20, length - 1);
    if (fraction < 0) return -1;
    for (let decimals = length - 21; decimals < 6; decimals += 1) fraction *= 10;
  }
  return Date.UTC(year, month - 1, day, hour, minute, second) * 1000 + fraction;
}

/** @returns the number written in the characters from `start` to before `end`, or -1 */
function digits(text: string, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i += 1) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

// Date.UTC rolls 30 February over to March, and 24:00 to the next day.
function isSameCivilTime(date: number, match: RegExpExecArray): boolean {
  return !Number.isNaN(date) && new Date(date).toISOString().slice(0, 19) === match[0].slice(0, 19);
}

function failZone(zone: string): ParsedTimestamp {
  if (zone === '') return fail('timestamp_no_zone', NO_ZONE_HINT);
  if (zone === '-00:00') {
    return fail('timestamp_no_zone', '-00:00 means an unknown zone (RFC 3339); send Z.');
  }
  if (OFFSET_ZONE.test(zone)) {
    return fail('timestamp_not_utc', `Zone "${zone}" is not Z or +00:00. Convert to UTC first.`);
  }
  return fail('timestamp_malformed', 'Unknown text after the time. Send Z for UTC.');
}

function hintForMalformed(text: string): string {
  if (/^\d{9,19}$/.test(text)) {
    return 'This looks like a Unix time. Send ISO 8601, e.g. 2026-11-20T01:02:03.004Z.';
  }
  return 'The form must be YYYY-MM-DDThh:mm:ss[.ffffff]Z.';
}

function fail(code: TimestampFaultCode, detail: string): ParsedTimestamp {
  return { ok: false, code, detail };
}

let formattedSecond = -1;
let formattedPrefix = '';

/** Formats microseconds as ISO 8601 with six decimals and `Z`, as all times leave the system. */
export function formatTimestamp(micros: Micros): string {
  const second = Math.floor(micros / 1e6);
  // Times formatted together are mostly of the same second, and formatting the date is expensive.
  if (second !== formattedSecond) {
    formattedSecond = second;
    formattedPrefix = new Date(second * 1000).toISOString().slice(0, 20);
  }
  return `${formattedPrefix}${String(micros - second * 1e6).padStart(6, '0')}Z`;
}
