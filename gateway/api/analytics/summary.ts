import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { parseWindow, toldWindow, type Window } from '../time-range.ts';
import { RANGES } from './limits.ts';
import { SYMBOL, WINDOW, WINDOW_EXAMPLE, WindowSchema } from './parameters.ts';
import { lessTime, NumberOrNull, type Question, type Sources } from './question.ts';

interface Row {
  readonly count: number;
  readonly spread_mean: number;
  readonly spread_stddev: number | null;
  readonly spread_min: number;
  readonly spread_max: number;
  readonly spread_p05: number;
  readonly spread_p50: number;
  readonly spread_p95: number;
  readonly confidence_mean: number;
  readonly confidence_p50: number;
  readonly last: readonly [partition: number, offset: number, timestamp: string, spread: number];
}

const QUERY = { symbol: SYMBOL, ...WINDOW };

/** `GET /api/analytics/summary`. */
export function summaryQuestion({
  desk,
}: Sources): Question<typeof QUERY, { readonly symbol: string; readonly window: Window }> {
  return {
    name: 'summary',
    summary: 'What spread and confidence of a symbol were over a time',
    description:
      'Percentiles are interpolated between the two nearest values (type 7 of Hyndman and Fan); ' +
      '`stddev` is that of a sample. Where no pill is in the time, `count` is 0 and the rest null.',
    query: QUERY,
    answer: {
      symbol: Type.String(),
      window: WindowSchema,
      count: Type.Integer(),
      spread: Type.Union([
        Type.Object({
          mean: Type.Number(),
          stddev: NumberOrNull,
          min: Type.Number(),
          max: Type.Number(),
          p05: Type.Number(),
          p50: Type.Number(),
          p95: Type.Number(),
        }),
        Type.Null(),
      ]),
      confidence: Type.Union([
        Type.Object({ mean: Type.Number(), p50: Type.Number() }),
        Type.Null(),
      ]),
      last: Type.Union([
        Type.Object({
          cursor: Type.String(),
          timestamp: Type.String(),
          gross_spread_percent: Type.Number(),
        }),
        Type.Null(),
      ]),
    },
    csvExample: 'symbol,count,spread_mean,spread_stddev\r\n7203.T,18211,0.13,0.03\r\n',
    example: {
      symbol: '7203.T',
      window: WINDOW_EXAMPLE,
      count: 18_211,
      spread: { mean: 0.13, stddev: 0.03, min: 0.08, max: 0.4, p05: 0.1, p50: 0.12, p95: 0.2 },
      confidence: { mean: 0.83, p50: 0.85 },
      last: {
        cursor: '3-140',
        timestamp: '2026-11-20T01:02:07.870000Z',
        gross_spread_percent: 0.14,
      },
    },
    parse(query, now) {
      const window = parseWindow(query, RANGES.summary, now);
      return window.ok
        ? { ok: true, value: { symbol: query.symbol, window: window.value } }
        : window;
    },
    less: ({ window }) => lessTime(window),
    async find({ symbol, window }) {
      const [row] = await desk.ask<Row>(
        `SELECT * FROM summary(symbol = {symbol:String},
           since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})`,
        { symbol, since: decimalSeconds(window.since), until: decimalSeconds(window.until) },
      );
      const body = { symbol, window: toldWindow(window), ...figuresOf(row) };
      return {
        body,
        table: { columns: COLUMNS, rows: row === undefined ? [] : [flat(symbol, row)] },
      };
    },
  };
}

function figuresOf(row: Row | undefined) {
  if (row === undefined) return { count: 0, spread: null, confidence: null, last: null };
  const [partition, offset, timestamp, spread] = row.last;
  return {
    count: row.count,
    spread: {
      mean: row.spread_mean,
      stddev: row.spread_stddev,
      min: row.spread_min,
      max: row.spread_max,
      p05: row.spread_p05,
      p50: row.spread_p50,
      p95: row.spread_p95,
    },
    confidence: { mean: row.confidence_mean, p50: row.confidence_p50 },
    last: { cursor: formatCursor(partition, offset), timestamp, gross_spread_percent: spread },
  };
}

const COLUMNS = [
  'symbol',
  'count',
  'spread_mean',
  'spread_stddev',
  'spread_min',
  'spread_max',
  'spread_p05',
  'spread_p50',
  'spread_p95',
  'confidence_mean',
  'confidence_p50',
  'last_cursor',
  'last_timestamp',
  'last_gross_spread_percent',
] as const;

function flat(symbol: string, row: Row) {
  const [partition, offset, timestamp, spread] = row.last;
  return {
    ...row,
    symbol,
    last_cursor: formatCursor(partition, offset),
    last_timestamp: timestamp,
    last_gross_spread_percent: spread,
  };
}
