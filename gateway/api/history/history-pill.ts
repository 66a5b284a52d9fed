import type { Pill } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { type PublicPill, publicPill } from '../../../schemas/public-pill.ts';
import type { ReceiptPill } from '../../../schemas/receipt.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Statement } from '../clickhouse/read-bytes.ts';
import { csvOf } from '../server/csv.ts';

/** Columns of `HistoryRow` in `pills FINAL`. Times are µs, so that they are parsed only once. */
export const ROW_COLUMNS = `epoch, partition, offset, prev, id, symbol, gross_spread_percent,
  market_state, confidence, late, backfill,
  toUnixTimestamp64Micro(timestamp) AS at,
  toUnixTimestamp64Micro(received_at) AS received,
  toUnixTimestamp64Micro(order_time) AS ordered`;

/** The columns of every table of pills, in this order; CSV has the same. */
const CSV_COLUMNS = [
  ...['cursor', 'prev', 'id', 'timestamp', 'symbol', 'gross_spread_percent', 'market_state'],
  ...['confidence', 'received_at', 'late', 'backfill', 'epoch'],
] as const;

const cursorOf = (offset: string) => `concat(toString(partition), '-', toString(${offset}))`;
const COMPUTED: Partial<Record<(typeof CSV_COLUMNS)[number], string>> = {
  cursor: cursorOf('offset'),
  prev: `if(isNull(prev), NULL, ${cursorOf('assumeNotNull(prev)')})`,
  // Few values: a dictionary in Arrow and Parquet.
  symbol: 'toLowCardinality(symbol)',
};

/** The same columns of `pills FINAL`, with the types of Arrow and Parquet; the epoch is stated. */
export const TYPED_COLUMNS = CSV_COLUMNS.map((name) =>
  COMPUTED[name] === undefined ? name : `${COMPUTED[name]} AS ${name}`,
).join(', ');

/** A pill as ClickHouse returns it. */
export interface HistoryRow extends Omit<Pill, 'timestamp'> {
  readonly epoch: string;
  readonly partition: number;
  readonly offset: number;
  readonly prev: number | null;
  readonly late: boolean;
  readonly backfill: boolean;
  readonly at: Micros;
  readonly received: Micros;
  readonly ordered: Micros;
}

/** Pills of a page. */
export interface PillRows {
  readonly rows: readonly HistoryRow[];
  /** Selects the same rows again, in the same order; begins with FROM. */
  readonly statement: Statement;
}

/** A pill of history. @param epoch the current one of the log: only another epoch is stated */
export function pillOf(row: HistoryRow, epoch: string): PublicPill {
  const { id, symbol, gross_spread_percent, market_state, confidence } = row;
  const { partition, offset, prev, late, backfill } = row;
  const times = { timestamp: row.at, received_at: row.received };
  const sent = { id, symbol, gross_spread_percent, market_state, confidence };
  const pill = { ...sent, ...times, partition, offset, late, backfill };
  return publicPill(pill, row.epoch === epoch ? { prev } : { prev, epoch: row.epoch });
}

/** The cursor of a pill of history, after the epoch if another is the current one. */
export function placeOf({ partition, offset, epoch: own }: HistoryRow, epoch: string): string {
  return `${own === epoch ? '' : own}${formatCursor(partition, offset)}`;
}

/** Pills as CSV: every row has all columns, flags included. */
export function csvOfPills(pills: readonly PublicPill[]): string {
  const rows = pills.map((pill) => ({
    ...pill,
    late: pill.late === true,
    backfill: pill.backfill === true,
  }));
  return csvOf({ columns: CSV_COLUMNS, rows });
}

/** A pill as its receipt covers it. */
export function receiptPill(row: HistoryRow): ReceiptPill {
  const { epoch, partition, offset, id, symbol, gross_spread_percent, market_state } = row;
  const { at: timestamp, confidence } = row;
  const place = { epoch, partition, offset, id, symbol, timestamp };
  return { ...place, gross_spread_percent, market_state, confidence };
}
