import type { Micros } from '../../../schemas/timestamp.ts';
import type { Select } from '../clickhouse/select.ts';
import { type HistoryRow, type PillRows, ROW_COLUMNS } from './history-pill.ts';
import { AHEAD_MAX_MICROS } from './history-query.ts';
import type { TimePageState } from './page-token.ts';

type Key = TimePageState['key'];

export interface TimePageRequest {
  readonly symbols: readonly string[];
  readonly from: Micros;
  /** Exclusive; undefined: no end but `known`. */
  readonly to: Micros | undefined;
  readonly order: 'asc' | 'desc';
  /** The current log, and the last offset to include of each partition of the symbols. */
  readonly known: {
    readonly epoch: string;
    readonly offsets: ReadonlyMap<number, number>;
  };
  /** The last pill of the previous page. */
  readonly key: Key | undefined;
  readonly limit: number;
}

/** A total order: in each epoch, a symbol is in one partition. */
const ORDER = ['order_time', 'symbol', 'epoch', 'offset'] as const;
/** Sorts after every symbol and every epoch: after all pills of one order time. */
const LAST = '~';

/**
 * Reads the next pills of some symbols in order time. The table is sorted by symbol and timestamp,
 * which is at most 5 min after the order time: a first statement finds the end of the page along the
 * timestamps of each symbol, and only the rows up to there are read. Pills after `known` are left
 * out, so that pages fit together.
 * @returns the rows, the statement that selects them again, and the start of the next page; undefined
 * at the end
 */
export async function readByTime(
  select: Select,
  request: TimePageRequest,
): Promise<PillRows & { readonly key?: Key }> {
  const { symbols, order, limit } = request;
  const isAscending = order === 'asc';
  const direction = isAscending ? '' : 'DESC';
  const { condition, params } = pageCondition(request);
  const timestamps = symbols.map(
    (_, at) => `(SELECT toUnixTimestamp64Micro(timestamp) AS at FROM pills
      WHERE symbol = {symbol_${at}:String} AND ${condition}
      ORDER BY timestamp ${direction} LIMIT ${limit + 1})`,
  );
  const [beyond] = await select<{ at: number }>(
    `SELECT at FROM (${timestamps.join(' UNION ALL ')})
     ORDER BY at ${direction} LIMIT 1 OFFSET ${limit}`,
    { ...params, ...Object.fromEntries(symbols.map((symbol, at) => [`symbol_${at}`, symbol])) },
  );
  // More than a page's worth of pills has an order time up to the horizon, or from there on.
  const horizon = beyond && (isAscending ? beyond.at : beyond.at - AHEAD_MAX_MICROS);
  const upToHorizon = isAscending
    ? `order_time <= ${time('horizon')} AND timestamp <= ${time('horizon_ahead')}`
    : `order_time >= ${time('horizon')} AND timestamp >= ${time('horizon')}`;
  const statement = {
    query: `FROM pills FINAL
     WHERE symbol IN {symbols:Array(String)} AND ${condition}
       ${horizon === undefined ? '' : `AND ${upToHorizon}`}
     ORDER BY ${ORDER.map((column) => `${column} ${direction}`).join()} LIMIT ${limit}`,
    params: {
      ...params,
      symbols,
      ...(horizon !== undefined && { horizon, horizon_ahead: horizon + AHEAD_MAX_MICROS }),
    },
  };
  const rows = await select<HistoryRow>(
    `SELECT ${ROW_COLUMNS} ${statement.query}`,
    statement.params,
  );
  if (horizon === undefined) return { rows, statement };
  const last = rows.at(-1);
  if (last !== undefined && rows.length === limit) {
    return { rows, statement, key: [last.ordered, last.epoch, last.offset, last.symbol] };
  }
  // Shorter because FINAL removed repeats: everything up to the horizon was covered.
  const edge = isAscending ? LAST : '';
  return { rows, statement, key: [horizon, edge, 0, edge] };
}

/** The pills of the range that are not on earlier pages, except for their symbols. */
function pageCondition({ symbols, from, to, order, known, key }: TimePageRequest) {
  const [keyOrder, epoch, offset, symbol = symbols[0]] = key ?? [];
  const isAscending = order === 'asc';
  const start = isAscending && keyOrder !== undefined ? keyOrder : from;
  const pageEnd = isAscending ? undefined : keyOrder;
  const offsets = [...known.offsets].map(
    ([partition, last]) => `(partition = ${partition} AND offset <= ${last})`,
  );
  const condition = [
    `order_time >= ${time('start')} AND timestamp >= ${time('start')}`,
    ...(to === undefined ? [] : [`order_time < ${time('to')}`, `timestamp < ${time('to_ahead')}`]),
    ...(pageEnd === undefined ? [] : [`timestamp <= ${time('page_end')}`]),
    ...(key === undefined
      ? []
      : [
          `(${ORDER.join()}) ${isAscending ? '>' : '<'}
           (${time('key')}, {key_symbol:String}, {key_epoch:String}, {key_offset:Int64})`,
        ]),
    `(epoch != {epoch:String} OR ${offsets.join(' OR ')})`,
  ].join(' AND ');
  const params = {
    epoch: known.epoch,
    start,
    ...(to !== undefined && { to, to_ahead: to + AHEAD_MAX_MICROS }),
    ...(pageEnd !== undefined && { page_end: pageEnd + AHEAD_MAX_MICROS }),
    ...(key && { key: keyOrder, key_symbol: symbol, key_epoch: epoch, key_offset: offset }),
  };
  return { condition, params };
}

function time(parameter: string): string {
  return `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;
}
