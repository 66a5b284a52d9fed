import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { csvOf } from '../csv.ts';
import type { PillBody } from '../pill-body.ts';

/** Columns of a row, for `pills FINAL`. Times in µs: as text they would be read twice. */
export const ROW_COLUMNS = `epoch, partition, offset, prev, id, symbol, gross_spread_percent,
  market_state, confidence, late, backfill,
  toUnixTimestamp64Micro(timestamp) AS at,
  toUnixTimestamp64Micro(received_at) AS received,
  toUnixTimestamp64Micro(order_time) AS ordered`;

/** A pill as ClickHouse has it. */
export interface HistoryRow {
  readonly epoch: string;
  readonly partition: number;
  readonly offset: number;
  readonly prev: number | null;
  readonly id: string;
  readonly symbol: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
  readonly late: boolean;
  readonly backfill: boolean;
  readonly at: number;
  readonly received: number;
  readonly ordered: number;
}

/** A pill of history; flags, and the epoch of another log, appear only when set. */
export interface HistoryPill extends PillBody {
  readonly late?: true;
  readonly epoch?: string;
}

/** @param epoch that of the log now */
export function pillOf(row: HistoryRow, epoch: string): HistoryPill {
  return {
    cursor: formatCursor(row.partition, row.offset),
    prev: row.prev === null ? null : formatCursor(row.partition, row.prev),
    id: row.id,
    timestamp: formatTimestamp(row.at),
    symbol: row.symbol,
    gross_spread_percent: row.gross_spread_percent,
    market_state: row.market_state,
    confidence: row.confidence,
    received_at: formatTimestamp(row.received),
    ...(row.late ? { late: true } : {}),
    ...(row.backfill ? { backfill: true } : {}),
    ...(row.epoch === epoch ? {} : { epoch: row.epoch }),
  };
}

const CSV_COLUMNS = [
  ...['cursor', 'prev', 'id', 'timestamp', 'symbol', 'gross_spread_percent', 'market_state'],
  ...['confidence', 'received_at', 'late', 'backfill', 'epoch'],
] as const;

/** Pills as a table: a row has every column, also the flags that are not set. */
export function csvOfPills(pills: readonly HistoryPill[]): string {
  const rows = pills.map((pill) => ({
    ...pill,
    late: pill.late === true,
    backfill: pill.backfill === true,
  }));
  return csvOf({ columns: CSV_COLUMNS, rows });
}
