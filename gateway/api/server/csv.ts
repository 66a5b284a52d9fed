import { stringify } from 'csv-stringify/sync';

/** Rows, and the order of their columns. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/**
 * CSV by RFC 4180 with a header: lines end in CRLF; booleans as `true` and `false`; null is empty.
 */
export function csvOf({ columns, rows }: Table): string {
  return stringify([...rows], {
    header: true,
    columns: [...columns],
    record_delimiter: 'windows',
    cast: { boolean: String },
  });
}

/** Whether to answer with CSV: `format`, if given, takes precedence over `Accept`. */
export function isCsvWanted(
  format: 'json' | 'csv' | undefined,
  accept: string | undefined,
): boolean {
  return format === undefined ? prefersCsv(accept) : format === 'csv';
}

/**
 * Whether an Accept header prefers CSV to JSON (RFC 9110 section 12.5.1): CSV is named explicitly
 * and does not weigh less than JSON or a range that includes JSON. Of two equal weights, the first wins.
 */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  let csv = 0;
  let json = 0;
  for (const range of accept.split(',').slice(0, RANGES_MAX)) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = weightOf(parameters);
    // The later of the two needs a greater weight, not an equal one.
    if (type === 'text/csv' && weight > json) csv = Math.max(csv, weight);
    else if (JSON_RANGES.has(type) && weight > csv) json = Math.max(json, weight);
  }
  return csv > json;
}

/** Media ranges that are considered. */
const RANGES_MAX = 32;
const JSON_RANGES = new Set(['application/json', 'application/*', '*/*']);

function weightOf(parameters: readonly string[]): number {
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
}
