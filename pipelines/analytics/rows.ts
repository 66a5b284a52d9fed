import { decimalSeconds } from '../../lib/clickhouse.ts';
import type { EffectivePill } from '../../lib/order/judge.ts';

/** Columns of an insert, in the order of `rowOf`. */
export const COLUMNS = [
  'epoch',
  'partition',
  'offset',
  'symbol',
  'id',
  'timestamp',
  'received_at',
  'order_time',
  'gross_spread_percent',
  'market_state',
  'confidence',
  'source',
  'late',
  'backfill',
  'prev',
] as const;

/** A pill waiting for its insert. */
export interface BufferedRow {
  readonly partition: number;
  readonly offset: number;
  readonly values: readonly (string | number | boolean | null)[];
}

/** Makes the row of a pill; times as decimal seconds, which DateTime64(6) reads exactly. */
export function rowOf(epoch: string, pill: EffectivePill): BufferedRow {
  return {
    partition: pill.partition,
    offset: pill.offset,
    values: [
      epoch,
      pill.partition,
      pill.offset,
      pill.symbol,
      pill.id,
      decimalSeconds(pill.timestamp),
      decimalSeconds(pill.received_at),
      decimalSeconds(pill.order),
      pill.gross_spread_percent,
      pill.market_state,
      pill.confidence,
      pill.source ?? '',
      pill.late,
      pill.backfill,
      pill.prev,
    ],
  };
}
