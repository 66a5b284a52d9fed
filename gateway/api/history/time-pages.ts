import type { Micros } from '../../../schemas/timestamp.ts';
import type { Select } from '../clickhouse/select.ts';
import type { PageState } from './page-token.ts';
import { AHEAD_MAX_MICROS } from './question.ts';
import { type HistoryRow, ROW_COLUMNS } from './rows.ts';

/** The last pill of the page before: order time, epoch, offset. */
export type TimeKey = Extract<PageState, { key: unknown }>['key'];

export interface TimePage {
  readonly rows: readonly HistoryRow[];
  /** Where the next page begins; undefined: the end. */
  readonly key: TimeKey | undefined;
}

/** After the pills of one order time, whatever their epoch and offset. */
const LAST_EPOCH = '~';

/**
 * Reads the next pills of a symbol in order time. The table is sorted by timestamp, which is at most
 * 5 min after order time: so a page is found by a first look along the timestamps, and read from
 * there alone. Pills that came after `known` are left out, so that pages fit together.
 */
export async function readTimes(
  select: Select,
  ask: {
    readonly symbol: string;
    readonly from: Micros;
    /** Exclusive; undefined: no end but `known`. */
    readonly to: Micros | undefined;
    /** Log of now, and the last offset of the symbol's partition that counts. */
    readonly known: { readonly epoch: string; readonly offset: number };
    readonly key: TimeKey | undefined;
    readonly limit: number;
  },
): Promise<TimePage> {
  const { symbol, from, to, known, key, limit } = ask;
  const params = {
    symbol,
    ...{ epoch: known.epoch, known: known.offset, start: key?.[0] ?? from },
    ...(to === undefined ? {} : { to, to_ahead: to + AHEAD_MAX_MICROS }),
    ...(key === undefined ? {} : { key_epoch: key[1], key_offset: key[2] }),
  };
  const due = [
    'symbol = {symbol:String}',
    `timestamp >= ${time('start')}`,
    key === undefined
      ? `order_time >= ${time('start')}`
      : `(order_time, epoch, offset) > (${time('start')}, {key_epoch:String}, {key_offset:Int64})`,
    '(epoch != {epoch:String} OR offset <= {known:Int64})',
    ...(to === undefined ? [] : [`order_time < ${time('to')}`, `timestamp < ${time('to_ahead')}`]),
  ].join(' AND ');
  const [beyond] = await select<{ at: number }>(
    `SELECT toUnixTimestamp64Micro(timestamp) AS at FROM pills WHERE ${due}
     ORDER BY timestamp LIMIT 1 OFFSET ${limit}`,
    params,
  );
  // As many as a page have a timestamp up to there, and so an order time.
  const horizon = beyond?.at;
  const near =
    horizon === undefined
      ? ''
      : ` AND order_time <= ${time('horizon')} AND timestamp <= ${time('horizon_ahead')}`;
  const rows = await select<HistoryRow>(
    `SELECT ${ROW_COLUMNS} FROM pills FINAL WHERE ${due}${near}
     ORDER BY order_time, epoch, offset LIMIT ${limit}`,
    horizon === undefined
      ? params
      : { ...params, horizon, horizon_ahead: horizon + AHEAD_MAX_MICROS },
  );
  if (horizon === undefined) return { rows, key: undefined };
  const last = rows.at(-1);
  if (last !== undefined && rows.length === limit) {
    return { rows, key: [last.ordered, last.epoch, last.offset] };
  }
  // Shorter where repeats were merged away: all up to the horizon was looked at.
  return { rows, key: [horizon, LAST_EPOCH, 0] };
}

function time(parameter: string): string {
  return `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;
}
