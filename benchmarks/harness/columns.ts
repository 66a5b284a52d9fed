import type { Percentiles } from './histogram.ts';

/** A column of a table: its head, and the cell of a row. */
export type Column<Row> = readonly [head: string, cell: (row: Row) => string | number];

/** Lines of an aligned table. @param names columns from the left that are names, not figures */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  names = 1,
): string[] {
  const cells = [
    columns.map(([head]) => head),
    ...rows.map((row) => columns.map(([, cell]) => String(cell(row)))),
  ];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)));
  return cells.map((line) =>
    line
      .map((cell, at) => {
        if (at === line.length - 1) return cell;
        return at < names ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!);
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Columns of percentiles in ms. @param prefix of their heads */
export function percentileColumns<Row>(
  percentilesOf: (row: Row) => Percentiles,
  keys: readonly (keyof Percentiles)[] = ['p50', 'p99', 'p999', 'max'],
  prefix = '',
): Column<Row>[] {
  return keys.map((key) => [
    `${prefix}${key === 'p999' ? 'p99.9' : key}`,
    (row) => ms(percentilesOf(row)[key]),
  ]);
}

/** Columns of a median, and of a ratio to the reference of the same round. */
export function ratioColumns<
  Row extends { readonly ratio: number; readonly ratioMin: number; readonly ratioMax: number },
>(head: string): Column<Row>[] {
  return [
    [head, ({ ratio }) => fixed(2, ratio)],
    ['min', ({ ratioMin }) => fixed(2, ratioMin)],
    ['max', ({ ratioMax }) => fixed(2, ratioMax)],
  ];
}

/** Milliseconds with two digits; empty where there is no figure. */
export function ms(micros: number): string {
  return Number.isNaN(micros) ? '' : (micros / 1_000).toFixed(2);
}

/** A figure with this many digits; `?` where it could not be measured. */
export function fixed(digits: number, value: number | null): string {
  return value === null || Number.isNaN(value) ? '?' : value.toFixed(digits);
}

/** A whole number with thousands separators. */
export function grouped(value: number): string {
  return Math.round(value).toLocaleString('en');
}

export function verdict(isKept: boolean): 'kept' | 'MISSED' {
  return isKept ? 'kept' : 'MISSED';
}
