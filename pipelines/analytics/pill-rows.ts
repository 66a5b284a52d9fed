import type { EffectivePill } from '../../domain/order/judge.ts';
import { decimalSeconds } from '../../lib/clickhouse/clickhouse-client.ts';

/** A pill waiting for its insert. */
export interface BufferedRow {
  readonly partition: number;
  readonly offset: number;
  /** By column; every row has the same columns in the same order. */
  readonly values: Readonly<Record<string, string | number | boolean | null>>;
}

/** Makes the row of a pill; times as decimal seconds, which DateTime64(6) reads exactly. */
export function rowOf(epoch: string, pill: EffectivePill): BufferedRow {
  const { partition, offset } = pill;
  const values = {
    epoch,
    partition,
    offset,
    symbol: pill.symbol,
    id: pill.id,
    timestamp: decimalSeconds(pill.timestamp),
    received_at: decimalSeconds(pill.received_at),
    order_time: decimalSeconds(pill.order),
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
    source: pill.source ?? '',
    late: pill.late,
    backfill: pill.backfill,
    prev: pill.prev,
  };
  return { partition, offset, values };
}
