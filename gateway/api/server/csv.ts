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
