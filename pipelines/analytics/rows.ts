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
      seconds(pill.timestamp),
      seconds(pill.received_at),
      seconds(pill.order),
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

/** µs as ClickHouse reads them into DateTime64(6): decimal seconds. */
export function seconds(micros: number): string {
  const whole = Math.floor(micros / 1e6);
  // Ten digits of seconds: with fewer the parser takes the text for a date.
  return `${String(whole).padStart(10, '0')}.${String(micros - whole * 1e6).padStart(6, '0')}`;
}
