import type { LatestRow } from '../../lib/latest-table.ts';
import { formatCursor } from '../../schemas/position.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';

/** A pill as REST answers carry it; `backfill` appears only when set. */
export interface PillBody {
  readonly cursor: string;
  readonly prev: string | null;
  readonly id: string;
  readonly timestamp: string;
  readonly symbol: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
  readonly received_at: string;
  readonly backfill?: true;
}

/** Renders a row of the latest view. */
export function pillBody({ partition, pill }: LatestRow): PillBody {
  return {
    cursor: formatCursor(partition, pill.offset),
    prev: pill.prev_offset === null ? null : formatCursor(partition, pill.prev_offset),
    ...pillFields(pill),
  };
}

type Fields = Pick<
  LatestRow['pill'],
  | 'id'
  | 'timestamp'
  | 'symbol'
  | 'gross_spread_percent'
  | 'market_state'
  | 'confidence'
  | 'received_at'
  | 'backfill'
>;

/** What answers tell of a pill beside its place; `backfill` appears only when set. */
export function pillFields(pill: Fields): Omit<PillBody, 'cursor' | 'prev'> {
  return {
    id: pill.id,
    timestamp: formatTimestamp(pill.timestamp),
    symbol: pill.symbol,
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
    received_at: formatTimestamp(pill.received_at),
    ...(pill.backfill ? { backfill: true } : {}),
  };
}
