import { Type } from 'typebox';
import { formatCursor } from '../../../schemas/position.ts';
import { integers, numbers, numbersOrNull, texts } from '../server/example.ts';
import { type FigureKind, roundFigure } from '../server/figures.ts';
import { orNull } from '../server/schemas.ts';
import type { AnalyticsDeps } from './analytics-query.ts';
import { RANGES } from './limits.ts';
import { symbolQuery } from './symbol-query.ts';
import { WINDOW_ARGUMENTS } from './window-parameters.ts';

/** The figures, with examples. */
const SPREAD = { mean: 0.13, stddev: 0.03, min: 0.08, max: 0.4, p05: 0.1, p50: 0.12, p95: 0.2 };
const CONFIDENCE = { mean: 83, p50: 85 };

/** Columns of the view: `count`, `last`, and `spread_mean` and so on. */
type Row = Readonly<Record<string, number | null>> & {
  readonly last: readonly [partition: number, offset: number, timestamp: string, spread: number];
};

/** `GET /api/analytics/summary`. */
export function summaryQuery({ reader }: AnalyticsDeps) {
  return symbolQuery({
    name: 'summary',
    summary: 'Spread and confidence of a symbol over a window of time',
    description:
      'Percentiles are interpolated between the two nearest values (type 7 of Hyndman and Fan); ' +
      '`stddev` is the standard deviation of a sample. If the window has no pill, `count` is 0 and ' +
      'the other figures are null.',
    range: () => RANGES.summary,
    parameters: {},
    answer: ANSWER,
    csvExample: 'symbol,count,spread_mean,spread_stddev\r\n7203.T,18211,0.13,0.03\r\n',
    async run({ symbol, parameters }) {
      const [found] = await reader.select<Row>(
        `SELECT * FROM summary(symbol = {symbol:String}, ${WINDOW_ARGUMENTS})`,
        parameters,
      );
      const row = found && rounded(found);
      const rows = row === undefined ? [] : [tableRow(symbol, row)];
      return { body: figuresOf(row), table: { columns: COLUMNS, rows } };
    },
  });
}

const ANSWER = {
  ...integers({ count: 18_211 }),
  spread: orNull(Type.Object({ ...numbers(SPREAD), ...numbersOrNull({ stddev: SPREAD.stddev }) })),
  confidence: orNull(Type.Object(numbers(CONFIDENCE))),
  last: orNull(
    Type.Object({
      ...texts({ cursor: '3-140', timestamp: '2026-11-20T01:02:07.870000Z' }),
      ...numbers({ gross_spread_percent: 0.14 }),
    }),
  ),
};

/** Least, largest and last spread are those of pills, and stay exact. */
const EXACT = new Set(['min', 'max']);

function rounded(row: Row): Row {
  const names = (group: FigureKind & ('spread' | 'confidence'), figures: object) =>
    Object.keys(figures)
      .filter((name) => !EXACT.has(name))
      .map((name) => `${group}_${name}`)
      .map((name) => [name, roundFigure(group, row[name] as number | null)]);
  const all = [...names('spread', SPREAD), ...names('confidence', CONFIDENCE)];
  return { ...row, ...Object.fromEntries(all) };
}

function figuresOf(row: Row | undefined) {
  if (row === undefined) return { count: 0, spread: null, confidence: null, last: null };
  const pick = (group: string, figures: object) =>
    Object.fromEntries(Object.keys(figures).map((name) => [name, row[`${group}_${name}`]]));
  const [partition, offset, timestamp, spread] = row.last;
  return {
    count: row.count,
    spread: pick('spread', SPREAD),
    confidence: pick('confidence', CONFIDENCE),
    last: { cursor: formatCursor(partition, offset), timestamp, gross_spread_percent: spread },
  };
}

const COLUMNS = [
  'symbol',
  'count',
  ...Object.keys(SPREAD).map((name) => `spread_${name}`),
  ...Object.keys(CONFIDENCE).map((name) => `confidence_${name}`),
  'last_cursor',
  'last_timestamp',
  'last_gross_spread_percent',
];

function tableRow(symbol: string, row: Row) {
  const [partition, offset, timestamp, spread] = row.last;
  return {
    ...row,
    symbol,
    last_cursor: formatCursor(partition, offset),
    last_timestamp: timestamp,
    last_gross_spread_percent: spread,
  };
}
