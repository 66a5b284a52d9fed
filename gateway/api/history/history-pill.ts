import type { Pill } from '../../../schemas/pill.ts';
import { type PublicPill, publicPill } from '../../../schemas/public-pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { csvOf } from '../server/csv.ts';

/** Columns of `HistoryRow` in `pills FINAL`. Times are µs, so that they are parsed only once. */
export const ROW_COLUMNS = `epoch, partition, offset, prev, id, symbol, gross_spread_percent,
  market_state, confidence, late, backfill,
  toUnixTimestamp64Micro(timestamp) AS at,
  toUnixTimestamp64Micro(received_at) AS received,
  toUnixTimestamp64Micro(order_time) AS ordered`;

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

/** A pill of history. @param epoch the current one of the log: only another epoch is stated */
export function pillOf(row: HistoryRow, epoch: string): PublicPill {
  const pill = { ...row, timestamp: row.at, received_at: row.received };
  const body = publicPill(pill, { prev: row.prev });
  return row.epoch === epoch ? body : { ...body, epoch: row.epoch };
}

const CSV_COLUMNS = [
  ...['cursor', 'prev', 'id', 'timestamp', 'symbol', 'gross_spread_percent', 'market_state'],
  ...['confidence', 'received_at', 'late', 'backfill', 'epoch'],
] as const;

/** Pills as CSV: every row has all columns, flags included. */
export function csvOfPills(pills: readonly PublicPill[]): string {
  const rows = pills.map((pill) => ({
    ...pill,
    late: pill.late === true,
    backfill: pill.backfill === true,
  }));
  return csvOf({ columns: CSV_COLUMNS, rows });
}
