import { TEST_PREFIX } from '../../../schemas/pill.ts';
import { parsePosition } from '../../../schemas/position.ts';
import { digestText, type ReceiptSum } from '../../../schemas/receipt.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Statement } from '../clickhouse/read-bytes.ts';
import type { Select } from '../clickhouse/select.ts';
import { AHEAD_MAX_MICROS } from '../history/history-query.ts';
import type { ExportFormat } from './export-formats.ts';

/** The pills of an export. */
export interface ExportRange {
  /** undefined: all except test symbols. */
  readonly symbols?: readonly string[] | undefined;
  /** Order time, µs; `to` is exclusive. */
  readonly from: Micros;
  readonly to: Micros;
  readonly minConfidence?: number | undefined;
  readonly minSpread?: number | undefined;
  readonly maxSpread?: number | undefined;
  readonly states?: readonly string[] | undefined;
}

/** A stored request. */
export interface StoredRequest {
  readonly format: ExportFormat;
  readonly range: ExportRange;
}

/** A place in the order of an export, which is the key of the table. */
export interface ExportKey {
  readonly symbol: string;
  readonly at: Micros;
  readonly id: string;
}

/** @param position pills beyond it are left out, so that slices fit together while pills arrive */
export function selectRange(range: ExportRange, position: string): Statement {
  const { epoch, offsets } = parsePosition(position)!;
  const known = [...offsets].map(([p, last]) => `(partition = ${p} AND offset <= ${last})`);
  const { symbols, states, minConfidence, minSpread, maxSpread } = range;
  const conditions = [
    symbols === undefined
      ? `NOT startsWith(symbol, '${TEST_PREFIX}')`
      : 'symbol IN {symbols:Array(String)}',
    `order_time >= ${time('from')} AND order_time < ${time('to')}`,
    // For the primary key: a timestamp is at most 5 min ahead of the order time.
    `timestamp >= ${time('from')} AND timestamp < ${time('to_ahead')}`,
    ...(minConfidence === undefined ? [] : ['confidence >= {min_confidence:Float64}']),
    ...(minSpread === undefined ? [] : ['gross_spread_percent >= {min_spread:Float64}']),
    ...(maxSpread === undefined ? [] : ['gross_spread_percent <= {max_spread:Float64}']),
    ...(states === undefined ? [] : ['market_state IN {states:Array(String)}']),
    `(epoch != {epoch:String} OR ${known.length === 0 ? 'false' : known.join(' OR ')})`,
  ];
  const params = {
    ...{ epoch, from: range.from, to: range.to, to_ahead: range.to + AHEAD_MAX_MICROS },
    ...(symbols && { symbols }),
    ...(states && { states }),
    ...(minConfidence !== undefined && { min_confidence: minConfidence }),
    ...(minSpread !== undefined && { min_spread: minSpread }),
    ...(maxSpread !== undefined && { max_spread: maxSpread }),
  };
  return { query: conditions.join('\n  AND '), params };
}

/**
 * The number of pills at most: repeats that are not merged yet are counted. @throws QueryError
 */
export async function countRows(select: Select, { query, params }: Statement): Promise<number> {
  const [row] = await select<{ rows: number }>(
    `SELECT count() AS rows FROM pills WHERE ${query}`,
    params,
  );
  return row!.rows;
}

/** The key of the last pill of the slice that begins after `after`; undefined: the last slice. */
export async function endOfSlice(
  select: Select,
  range: Statement,
  after: ExportKey | undefined,
  rows: number,
): Promise<ExportKey | undefined> {
  const { query, params } = within(range, after, undefined);
  const [end] = await select<ExportKey>(
    `SELECT symbol, toUnixTimestamp64Micro(timestamp) AS at, id FROM pills WHERE ${query}
     ORDER BY symbol, timestamp, id LIMIT 1 OFFSET ${rows - 1}`,
    params,
  );
  return end;
}

/** The pills of a slice in the order of the key, after the list of columns. */
export function selectSlice(
  range: Statement,
  after: ExportKey | undefined,
  until: ExportKey | undefined,
): Statement {
  const { query, params } = within(range, after, until);
  return {
    query: `FROM pills FINAL WHERE ${query} ORDER BY pills.symbol, pills.timestamp, pills.id`,
    params,
  };
}

/** The receipt of a slice, as ClickHouse computes it. @throws QueryError */
export async function receiptOfSlice(select: Select, slice: Statement): Promise<ReceiptSum> {
  const line = [
    ...['epoch', "concat(toString(partition), '-', toString(offset))", 'id', 'symbol'],
    ...['toString(toUnixTimestamp64Micro(timestamp))', bits('gross_spread_percent')],
    ...['market_state', bits('confidence')],
  ].join(", '\\n', ");
  type Place = [string, number, number];
  const [row] = await select<{ count: number; first: Place; last: Place; digest: string }>(
    `SELECT count() AS count, min((epoch, partition, offset)) AS first,
       max((epoch, partition, offset)) AS last,
       toString(sumWithOverflow(reinterpretAsUInt256(SHA256(concat(${line}))))) AS digest
     FROM (SELECT epoch, partition, offset, id, symbol, timestamp, gross_spread_percent,
             market_state, confidence ${slice.query})`,
    slice.params,
  );
  const { count, first, last, digest } = row!;
  const ends = count === 0 ? { first: null, last: null } : { first, last };
  return { count, ...ends, digest: digestText(BigInt(digest)) };
}

function bits(column: string): string {
  // -0 is 0, as ingest stores it.
  return `toString(reinterpretAsUInt64(${column}))`;
}

function within(
  range: Statement,
  after: ExportKey | undefined,
  until: ExportKey | undefined,
): Statement {
  const conditions = [
    range.query,
    ...(after === undefined ? [] : [beyond('after', '>')]),
    ...(until === undefined ? [] : [beyond('until', '<=')]),
  ];
  const params = { ...range.params, ...keyParams('after', after), ...keyParams('until', until) };
  return { query: conditions.join('\n  AND '), params };
}

/** Comparisons of single columns: the primary key does not serve those of tuples. */
function beyond(name: 'after' | 'until', sign: '>' | '<='): string {
  const symbol = `{${name}_symbol:String}`;
  const at = time(`${name}_at`);
  const strict = sign === '>' ? '>' : '<';
  return `symbol ${strict}= ${symbol} AND (symbol ${strict} ${symbol} OR timestamp ${strict} ${at}
    OR (timestamp = ${at} AND id ${sign} {${name}_id:String}))`;
}

function keyParams(name: string, key: ExportKey | undefined) {
  if (key === undefined) return {};
  return { [`${name}_symbol`]: key.symbol, [`${name}_at`]: key.at, [`${name}_id`]: key.id };
}

function time(parameter: string): string {
  return `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;
}
