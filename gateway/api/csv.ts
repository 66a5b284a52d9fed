import { stringify } from 'csv-stringify/sync';

/** Rows as text, their columns in this order. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** As RFC 4180 has it, with a header: lines end in CRLF; `true` and `false`; null is empty. */
export function csvOf({ columns, rows }: Table): string {
  return stringify([...rows], {
    ...{ header: true, columns: [...columns], record_delimiter: 'windows' },
    cast: { boolean: String },
  });
}

/** `format`, where it is given, goes before `Accept`. */
export function isCsvWanted(
  format: 'json' | 'csv' | undefined,
  accept: string | undefined,
): boolean {
  return format === undefined ? prefersCsv(accept) : format === 'csv';
}

/**
 * Whether an Accept header asks for CSV rather than JSON (RFC 9110, 12.5.1): named itself, and
 * not behind JSON or what includes it. Of equal weight the first one counts.
 */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  let csv = 0;
  let json = 0;
  for (const range of accept.split(',').slice(0, RANGES_MAX)) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = weightOf(parameters);
    // The later one of the two must be above the earlier, not equal to it.
    if (type === 'text/csv' && weight > json) csv = Math.max(csv, weight);
    else if (JSON_RANGES.has(type) && weight > csv) json = Math.max(json, weight);
  }
  return csv > json;
}

/** Media ranges that are looked at. */
const RANGES_MAX = 32;
const JSON_RANGES = new Set(['application/json', 'application/*', '*/*']);

function weightOf(parameters: readonly string[]): number {
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
}
