import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse/clickhouse-client.ts';
import { hintForSymbol, SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { integers, numbers, numbersOrNull, texts } from '../server/example.ts';
import { roundFigure } from '../server/figures.ts';
import { explained } from '../server/form.ts';
import { choice, optionalText, orNull, whole } from '../server/schemas.ts';
import type { AnalyticsDeps } from './analytics-query.ts';
import { RANGES } from './limits.ts';
import { symbolQuery } from './symbol-query.ts';
import { WINDOW_ARGUMENTS } from './window-parameters.ts';

const HORIZONS_S = { '1m': 60, '5m': 300, '15m': 900, '60m': 3_600 } as const;
type Horizon = keyof typeof HORIZONS_S;

/** The last pill within the horizon may be this old at its end. */
const AGE_MAX_S = 60;
const BUCKETS = 10;

const SYMBOL_OR_ALL = optionalText(
  'Market symbol, or `*`, the default, for all except test symbols',
  {
    pattern: explained(`^(\\*|${SYMBOL_PATTERN.slice(1, -1)})$`, (text) => [
      'symbol_malformed',
      hintForSymbol(text),
    ]),
  },
);

const PARAMETERS = {
  horizon: choice(
    Object.keys(HORIZONS_S) as Horizon[],
    'How much later the spread is compared; `5m` by default',
  ),
  scale: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: 1e6,
      description:
        `0 to \`scale\` is divided into ${BUCKETS} buckets. The largest confidence that ingest ` +
        'accepts, 100 unless the operator has set another, by default',
    }),
  ),
  min_n: whole(1, 1_000_000, 30, 'Buckets with fewer pills have no rate'),
};

interface Row {
  readonly outcome: 'settled' | 'unsettled' | 'not_observable' | 'excluded_backfill';
  readonly bucket: number;
  readonly n: number;
  readonly hits: number;
  readonly mean_confidence: number;
  readonly mean_change: number | null;
}

/** `GET /api/analytics/confidence`. */
export function confidenceQuery({ reader, confidenceMax }: AnalyticsDeps) {
  return symbolQuery({
    name: 'confidence',
    summary: 'How the spread developed after each pill, by confidence',
    description:
      'For each pill at t, the spread afterwards is that of the last pill of the symbol in ' +
      `(t, t + horizon], at most ${AGE_MAX_S} s old at its end. \`unsettled\`: the horizon has not ` +
      'passed yet; `not_observable`: there is no such pill; backfill is excluded on both sides. ' +
      "`ci95` is Wilson's score interval; consecutive pills of a symbol are not independent, so " +
      'the true interval is wider. With `symbol=*` the window is at most one day.',
    symbol: SYMBOL_OR_ALL,
    range: (symbol) => (symbol === '*' ? RANGES.confidenceOfAll : RANGES.confidence),
    parameters: PARAMETERS,
    answer: ANSWER,
    csvExample: 'from,to,n,hits,rate,ci95_low,ci95_high,mean_confidence,mean_change\r\n',
    async run(
      { parameters },
      { horizon = '5m', scale = confidenceMax, min_n = 30 },
      { completeUntil },
    ) {
      const rows = await reader.select<Row>(STATEMENT, {
        ...parameters,
        scale,
        buckets: BUCKETS,
        horizon: HORIZONS_S[horizon] * 1e6,
        age: AGE_MAX_S * 1e6,
        as_of: decimalSeconds(completeUntil),
      });
      const buckets = rows
        .filter(({ outcome, bucket }) => outcome === 'settled' && bucket < BUCKETS)
        .map((row) => bucketBody(row, scale, min_n));
      const body = {
        horizon,
        outcome: 'narrowed',
        definition: definitionOf(horizon),
        scale,
        pills: counts(rows),
        buckets,
        min_n,
      };
      const table = buckets.map(({ ci95, ...bucket }) => ({
        ...bucket,
        ci95_low: ci95?.[0] ?? null,
        ci95_high: ci95?.[1] ?? null,
      }));
      return { body, table: { columns: COLUMNS, rows: table } };
    },
  });
}

const ANSWER = {
  ...texts({ symbol: '*', horizon: '5m', outcome: 'narrowed', definition: definitionOf('5m') }),
  ...numbers({ scale: 100 }),
  pills: Type.Object({
    ...integers({ all: 120_000, settled: 117_200, unsettled: 1_500 }),
    ...integers({ not_observable: 1_000, excluded_backfill: 300 }),
    above_scale: Type.Integer({
      description: 'Settled pills above `scale`, in no bucket',
      examples: [0],
    }),
  }),
  buckets: Type.Array(
    Type.Object({
      ...numbers({ from: 80, to: 90 }),
      ...integers({ n: 8_123, hits: 6_011 }),
      ...numbersOrNull({ rate: 0.74 }),
      ci95: orNull(Type.Array(Type.Number(), { examples: [[0.73, 0.749]] })),
      ...numbers({ mean_confidence: 85.3 }),
      ...numbersOrNull({ mean_change: -0.021 }),
    }),
  ),
  ...integers({ min_n: 30 }),
};

const STATEMENT = `
  SELECT outcome,
         if(confidence > {scale:Float64}, {buckets:UInt32},
            least({buckets:UInt32} - 1, toUInt32(floor(confidence / {scale:Float64} * {buckets:UInt32})))) AS bucket,
         count() AS n, countIf(narrowed) AS hits, avg(confidence) AS mean_confidence,
         avgIf(spread_after - spread, outcome = 'settled') AS mean_change
  FROM track_record(symbol = {symbol:String}, horizon_us = {horizon:UInt64}, age_max_us = {age:UInt64},
    ${WINDOW_ARGUMENTS}, as_of = {as_of:DateTime64(6, 'UTC')})
  GROUP BY outcome, bucket ORDER BY outcome, bucket`;

const COLUMNS = [
  ...['from', 'to', 'n', 'hits', 'rate', 'ci95_low', 'ci95_high', 'mean_confidence'],
  'mean_change',
];

function bucketBody(row: Row, scale: number, minN: number) {
  const { bucket, n, hits, mean_confidence, mean_change } = row;
  const isEnough = n >= minN;
  return {
    from: edgeOf(bucket, scale),
    to: edgeOf(bucket + 1, scale),
    n,
    hits,
    rate: isEnough ? roundFigure('share', hits / n) : null,
    ci95: isEnough ? wilson95(hits, n).map((end) => roundFigure('share', end)) : null,
    mean_confidence: roundFigure('confidence', mean_confidence),
    mean_change: isEnough ? roundFigure('spread', mean_change) : null,
  };
}

/** Twelve digits, since 3 × 0.1 would be 0.30000000000000004. */
function edgeOf(bucket: number, scale: number): number {
  return Number(((bucket * scale) / BUCKETS).toPrecision(12));
}

/** 0.975 quantile of the standard normal distribution: 95 % of it lies within ±Z. */
const Z = 1.959963984540054;

/**
 * 95 % confidence interval of a proportion: Wilson's score interval (1927), which stays within 0 and
 * 1 and is valid for few trials too.
 */
function wilson95(hits: number, n: number): [low: number, high: number] {
  const rate = hits / n;
  const middle = rate + (Z * Z) / (2 * n);
  const reach = Z * Math.sqrt((rate * (1 - rate)) / n + (Z * Z) / (4 * n * n));
  const scale = 1 + (Z * Z) / n;
  return [Math.max(0, (middle - reach) / scale), Math.min(1, (middle + reach) / scale)];
}

function counts(rows: readonly Row[]) {
  const sum = (some: readonly Row[]) => some.reduce((total, { n }) => total + n, 0);
  const of = (name: Row['outcome']) => rows.filter(({ outcome }) => outcome === name);
  return {
    all: sum(rows),
    settled: sum(of('settled')),
    unsettled: sum(of('unsettled')),
    not_observable: sum(of('not_observable')),
    excluded_backfill: sum(of('excluded_backfill')),
    above_scale: sum(of('settled').filter(({ bucket }) => bucket === BUCKETS)),
  };
}

function definitionOf(horizon: Horizon): string {
  return (
    `|spread at t+${horizon}| < |spread at t|; spread at t+${horizon} = last pill in (t, t+${horizon}], ` +
    `at most ${AGE_MAX_S} s old`
  );
}
