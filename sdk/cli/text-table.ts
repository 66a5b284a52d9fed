import Table from 'cli-table3';
import type { Pill } from '../rest/responses.ts';

const NO_LINES = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left'],
    ...['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'],
  ].map((name) => [name, '']),
);

/** A table without borders, for people as well as for `cut` and `awk`. @returns its lines */
export function renderTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  options: { readonly right?: readonly number[]; readonly widths?: readonly number[] } = {},
): string[] {
  const { right = [], widths } = options;
  const table = new Table({
    head: [...head],
    chars: { ...NO_LINES, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    colAligns: (rows[0] ?? head).map((_, column) => (right.includes(column) ? 'right' : 'left')),
    ...(widths === undefined ? {} : { colWidths: [...widths] }),
  });
  table.push(...rows.map((row) => row.map(printable)));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd());
}

/** Replaces control characters, so that text of a server cannot control the terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '\u{fffd}');
}

/** Columns of a pill. The widths fit usual pills; longer cells are cut with `…`. */
export const PILL_COLUMNS = {
  head: ['TIME (UTC)', 'SYMBOL', 'SPREAD %', 'STATE', 'CONFIDENCE', 'AGE', 'FLAGS'],
  widths: [26, 16, 12, 12, 10, 9, 24],
  right: [2, 4, 5],
} as const;

/** Cells of a pill. @param nowMs this machine's clock, Unix ms, from which the age is computed */
export function pillCells(pill: Pill, nowMs: number): string[] {
  const flags = [
    pill.replayed && 'replayed',
    pill.late && 'late',
    pill.backfill && 'backfill',
    pill.skipped !== undefined && `skipped:${pill.skipped}`,
  ];
  return [
    pill.timestamp.replace('T', ' ').replace('Z', ''),
    pill.symbol,
    String(pill.gross_spread_percent),
    pill.market_state,
    String(pill.confidence),
    formatAge(nowMs - Date.parse(pill.timestamp)),
    flags.filter(Boolean).join(' '),
  ];
}

/** A line of a pill or of the head, in fixed widths, since lines are printed one by one. */
export function pillLine(cells: readonly string[]): string {
  const { widths, right } = PILL_COLUMNS;
  const [line = ''] = renderTable([], [cells], { widths, right });
  return line;
}

/** ms for people: `450 ms`, `12.3 s`, `5 min`, `3 h`, `2 d`. */
export function formatAge(ms: number): string {
  if (Number.isNaN(ms)) return '?';
  if (Math.abs(ms) < 1_000) return `${Math.round(ms)} ms`;
  if (Math.abs(ms) < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (Math.abs(ms) < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (Math.abs(ms) < 86_400_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}
