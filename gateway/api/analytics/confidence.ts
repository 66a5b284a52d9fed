import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { parseWindow, toldWindow, type Window } from '../time-range.ts';
import { RANGES } from './limits.ts';
import { SYMBOL_OR_ALL, WINDOW, WINDOW_EXAMPLE, WindowSchema, whole } from './parameters.ts';
import { lessTime, NumberOrNull, type Question, type Sources } from './question.ts';
import { wilson95 } from './wilson.ts';

const HORIZONS_S = { '1m': 60, '5m': 300, '15m': 900, '60m': 3_600 } as const;
type Horizon = keyof typeof HORIZONS_S;

/** How old the last pill within the horizon may be at its end. */
const AGE_MAX_S = 60;
const BUCKETS = 10;

const QUERY = {
  symbol: SYMBOL_OR_ALL,
  horizon: Type.Optional(
    Type.Enum(Object.keys(HORIZONS_S) as Horizon[], {
      description: 'How much later the spread is looked at; `5m` by default',
    }),
  ),
  ...WINDOW,
  scale: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: 1e6,
      default: 1,
      description: 'The largest confidence that is sent: it is cut into ten; 1 by default',
    }),
  ),
  min_n: whole(1, 1_000_000, 30, 'Buckets with fewer pills have no rate'),
};

interface Asked {
  readonly symbol: string;
  readonly horizon: Horizon;
  readonly scale: number;
  readonly minN: number;
  readonly window: Window;
}

interface Row {
  readonly outcome: 'settled' | 'unsettled' | 'not_observable' | 'excluded_backfill';
  readonly bucket: number;
  readonly n: number;
  readonly hits: number;
  readonly mean_confidence: number;
  readonly mean_change: number | null;
}

/** `GET /api/analytics/confidence`. */
export function confidenceQuestion({ desk }: Sources): Question<typeof QUERY, Asked> {
  return {
    name: 'confidence',
    summary: 'What the spread did next, by confidence',
    description:
      `Of each pill at t: the last pill of the symbol in (t, t + horizon], at most ${AGE_MAX_S} s old at its ` +
      'end. `unsettled`: the horizon has not passed yet; `not_observable`: there is no such pill; backfill is ' +
      'excluded on both sides. `ci95` is the score interval of Wilson; pills of one symbol follow each ' +
      'other, so it is narrower than the truth. Of `*` at most a day.',
    query: QUERY,
    answer: {
      symbol: Type.String(),
      window: WindowSchema,
      horizon: Type.String(),
      outcome: Type.String(),
      definition: Type.String(),
      scale: Type.Number(),
      pills: Type.Object({
        all: Type.Integer(),
        settled: Type.Integer(),
        unsettled: Type.Integer(),
        not_observable: Type.Integer(),
        excluded_backfill: Type.Integer(),
        above_scale: Type.Integer({ description: 'Of the settled ones: in no bucket' }),
      }),
      buckets: Type.Array(
        Type.Object({
          from: Type.Number(),
          to: Type.Number(),
          n: Type.Integer(),
          hits: Type.Integer(),
          rate: NumberOrNull,
          ci95: Type.Union([Type.Array(Type.Number()), Type.Null()]),
          mean_confidence: Type.Number(),
          mean_change: NumberOrNull,
        }),
      ),
      min_n: Type.Integer(),
    },
    example: EXAMPLE,
    csvExample: 'from,to,n,hits,rate,ci95_low,ci95_high,mean_confidence,mean_change\r\n',
    parse(query, now) {
      const { symbol = '*', horizon = '5m', scale = 1, min_n: minN = 30 } = query;
      const range = symbol === '*' ? RANGES.confidenceOfAll : RANGES.confidence;
      const window = parseWindow(query, range, now);
      if (!window.ok) return window;
      return { ok: true, value: { symbol, horizon, scale, minN, window: window.value } };
    },
    less: ({ window }) => lessTime(window),
    async find(asked, { completeUntil }) {
      const { symbol, horizon, scale, minN, window } = asked;
      const rows = await desk.ask<Row>(STATEMENT, {
        ...{ symbol, scale, buckets: BUCKETS, horizon: HORIZONS_S[horizon] * 1e6 },
        age: AGE_MAX_S * 1e6,
        since: decimalSeconds(window.since),
        until: decimalSeconds(window.until),
        as_of: decimalSeconds(completeUntil),
      });
      const buckets = rows
        .filter(({ outcome, bucket }) => outcome === 'settled' && bucket < BUCKETS)
        .map((row) => toldBucket(row, scale, minN));
      const body = {
        ...{ symbol, window: toldWindow(window), horizon, outcome: 'narrowed' },
        ...{ definition: definitionOf(horizon), scale, pills: counts(rows), buckets, min_n: minN },
      };
      const table = buckets.map(({ ci95, ...bucket }) => ({
        ...bucket,
        ci95_low: ci95?.[0] ?? null,
        ci95_high: ci95?.[1] ?? null,
      }));
      return { body, table: { columns: COLUMNS, rows: table } };
    },
  };
}

const STATEMENT = `
  SELECT outcome,
         if(confidence > {scale:Float64}, {buckets:UInt32},
            least({buckets:UInt32} - 1, toUInt32(floor(confidence / {scale:Float64} * {buckets:UInt32})))) AS bucket,
         count() AS n, countIf(narrowed) AS hits, avg(confidence) AS mean_confidence,
         avgIf(spread_after - spread, outcome = 'settled') AS mean_change
  FROM track_record(symbol = {symbol:String}, horizon_us = {horizon:UInt64}, age_max_us = {age:UInt64},
    since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')},
    as_of = {as_of:DateTime64(6, 'UTC')})
  GROUP BY outcome, bucket ORDER BY outcome, bucket`;

const COLUMNS = [
  ...['from', 'to', 'n', 'hits', 'rate', 'ci95_low', 'ci95_high', 'mean_confidence'],
  'mean_change',
];

function toldBucket({ bucket, n, hits, ...means }: Row, scale: number, minN: number) {
  const isEnough = n >= minN;
  return {
    from: (bucket * scale) / BUCKETS,
    to: ((bucket + 1) * scale) / BUCKETS,
    ...{ n, hits, rate: isEnough ? hits / n : null, ci95: isEnough ? wilson95(hits, n) : null },
    mean_confidence: means.mean_confidence,
    mean_change: isEnough ? means.mean_change : null,
  };
}

function counts(rows: readonly Row[]) {
  const of = (...outcomes: readonly Row['outcome'][]) =>
    rows.reduce((sum, row) => sum + (outcomes.includes(row.outcome) ? row.n : 0), 0);
  const above = rows.filter(({ outcome, bucket }) => outcome === 'settled' && bucket === BUCKETS);
  return {
    all: rows.reduce((sum, { n }) => sum + n, 0),
    settled: of('settled'),
    unsettled: of('unsettled'),
    not_observable: of('not_observable'),
    excluded_backfill: of('excluded_backfill'),
    above_scale: above.reduce((sum, { n }) => sum + n, 0),
  };
}

function definitionOf(horizon: Horizon): string {
  return (
    `|spread at t+${horizon}| < |spread at t|; spread at t+${horizon} = last pill in (t, t+${horizon}], ` +
    `at most ${AGE_MAX_S} s old`
  );
}

const EXAMPLE = {
  symbol: '*',
  window: WINDOW_EXAMPLE,
  ...{ horizon: '5m', outcome: 'narrowed', definition: definitionOf('5m'), scale: 1 },
  pills: {
    ...{ all: 120_000, settled: 117_200, unsettled: 1_500, not_observable: 1_000 },
    ...{ excluded_backfill: 300, above_scale: 0 },
  },
  buckets: [
    {
      ...{ from: 0.8, to: 0.9, n: 8_123, hits: 6_011, rate: 0.74, ci95: [0.73, 0.749] },
      ...{ mean_confidence: 0.853, mean_change: -0.021 },
    },
  ],
  min_n: 30,
};
