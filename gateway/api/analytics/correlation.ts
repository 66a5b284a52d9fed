import { setImmediate as turn } from 'node:timers/promises';
import { type Static, type TObject, type TSchema, Type } from 'typebox';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import { integers, texts } from '../server/example.ts';
import { roundFigure } from '../server/figures.ts';
import { type Parsed, refused } from '../server/parameters.ts';
import { choice, orNull, whole } from '../server/schemas.ts';
import { listPattern, readWellFormedSymbols } from '../server/symbol-list.ts';
import { parseWindow, type Window, windowBody } from '../server/time-range.ts';
import { type AnalyticsDeps, type AnalyticsQuery, laterHalf } from './analytics-query.ts';
import { BAR_RANGES, CORRELATED_MAX, CORRELATED_STEPS_MAX, RANGES } from './limits.ts';
import {
  WINDOW,
  WINDOW_ARGUMENTS,
  WindowSchema,
  wholeSteps,
  windowParameters,
} from './window-parameters.ts';

const INTERVALS = ['1s', '1m', '1h'] as const;

const PARAMETERS = {
  symbols: Type.String({
    pattern: listPattern(2, CORRELATED_MAX),
    examples: ['7203.T,6758.T'],
    description: `2 to ${CORRELATED_MAX} different symbols, separated by commas`,
  }),
  interval: choice(INTERVALS, 'Length of a bar; `1m` by default'),
  ...WINDOW,
  min_n: whole(3, 10_000, 30, 'r is null for pairs with fewer common changes'),
};

interface CorrelationRequest {
  readonly symbols: readonly string[];
  readonly interval: (typeof INTERVALS)[number];
  readonly minN: number;
  readonly window: Window;
}

const matrix = (of: TSchema, ...example: readonly number[][]) =>
  Type.Array(Type.Array(of), { examples: [example] });

type CorrelationQuery = AnalyticsQuery<typeof PARAMETERS, CorrelationRequest>;

const OF = "change of the bar's close";

/** `GET /api/analytics/correlation`. */
export function correlationQuery({ reader }: AnalyticsDeps): CorrelationQuery {
  return {
    name: 'correlation',
    summary: 'How the spreads of several symbols move together',
    description:
      "Pearson's r of the changes of the bars' closes. A change needs two neighbouring bars of a " +
      'symbol, and a pair uses the changes that both symbols have. r is null for fewer than ' +
      '`min_n` common changes, and if a series does not vary. At most ' +
      `${CORRELATED_STEPS_MAX} bars per symbol.`,
    parameters: PARAMETERS,
    answer: {
      window: WindowSchema,
      ...texts({ interval: '1m', of: OF, method: 'pearson' }),
      ...integers({ min_n: 30 }),
      symbols: Type.Array(Type.String(), { examples: [['7203.T', '6758.T']] }),
      r: matrix(orNull(Type.Number()), [1, 0.42], [0.42, 1]),
      n: matrix(Type.Integer(), [331, 310], [310, 330]),
    },
    csvExample: 'symbol,other,r,n\r\n7203.T,6758.T,0.42,310\r\n',
    parse,
    narrower: ({ window }) => ({
      ...laterHalf(window),
      hint: 'Half of the time may fit, or fewer symbols.',
    }),
    async run({ symbols, interval, minN, window }) {
      const rows = await reader.select<{ symbol: string; step: number; close: number }>(
        `SELECT symbol, intDiv(toUnixTimestamp(start), {step:UInt32}) AS step, close
         FROM bars(symbols = {symbols:Array(String)}, step_s = {step:UInt32}, ${WINDOW_ARGUMENTS})
         ORDER BY symbol, step`,
        { symbols, step: BAR_RANGES[interval].stepS, ...windowParameters(window) },
      );
      const changes = changesOf(rows);
      const series = symbols.map((symbol) => changes.get(symbol));
      const pairs = await correlateAll(series, minN);
      const body = {
        window: windowBody(window),
        interval,
        of: OF,
        method: 'pearson',
        min_n: minN,
        symbols,
        r: pairs.map((row) => row.map(({ r }) => r)),
        n: pairs.map((row) => row.map(({ n }) => n)),
      };
      const table = symbols.flatMap((symbol, at) =>
        symbols.map((other, to) => ({ symbol, other, ...pairs[at]![to]! })),
      );
      return { body, table: { columns: ['symbol', 'other', 'r', 'n'], rows: table } };
    },
  };
}

function parse(query: Static<TObject<typeof PARAMETERS>>, now: Micros): Parsed<CorrelationRequest> {
  const { interval = '1m', min_n: minN = 30 } = query;
  const faults: ParameterFault[] = [];
  const symbols = readWellFormedSymbols(query.symbols, faults);
  if (faults.length > 0) return { ok: false, faults };
  if (symbols.length < query.symbols.split(',').length) {
    return refused('symbols', 'repeated', 'Each symbol may appear only once.');
  }
  const { stepS } = BAR_RANGES[interval];
  const maxS = Math.min(RANGES.correlation.maxS, CORRELATED_STEPS_MAX * stepS);
  const byDefaultS = Math.min(RANGES.correlation.byDefaultS, maxS);
  const window = parseWindow(query, { byDefaultS, maxS }, now);
  if (!window.ok) return window;
  return { ok: true, value: { symbols, interval, minN, window: wholeSteps(window.value, stepS) } };
}

/** Changes of the close, by time step. */
type Changes = ReadonlyMap<number, number>;

/** By symbol: change of the close since the previous bar. */
function changesOf(
  rows: readonly { symbol: string; step: number; close: number }[],
): ReadonlyMap<string, Changes> {
  const changes = new Map<string, Map<number, number>>();
  for (const [at, { symbol, step, close }] of rows.entries()) {
    const before = rows[at - 1];
    if (before?.symbol !== symbol || before.step !== step - 1) continue;
    const own = changes.get(symbol) ?? new Map<number, number>();
    changes.set(symbol, own.set(step, close - before.close));
  }
  return changes;
}

interface Pair {
  readonly r: number | null;
  readonly n: number;
}

/** Correlates each pair once; the event loop gets a turn after each. */
async function correlateAll(
  series: readonly (Changes | undefined)[],
  minN: number,
): Promise<Pair[][]> {
  const pairs: Pair[][] = series.map(() => []);
  for (const [one, xs] of series.entries()) {
    for (const [other, ys] of series.slice(0, one + 1).entries()) {
      const pair = correlate(xs, ys, minN);
      pairs[one]![other] = pair;
      pairs[other]![one] = pair;
      await turn();
    }
  }
  return pairs;
}

function correlate(one: Changes = new Map(), other: Changes = new Map(), minN: number): Pair {
  const xs: number[] = [];
  const ys: number[] = [];
  for (const [step, x] of one) {
    const y = other.get(step);
    if (y === undefined) continue;
    xs.push(x);
    ys.push(y);
  }
  return { r: xs.length < minN ? null : pearson(xs, ys), n: xs.length };
}

/**
 * Pearson's correlation of two series. The two-pass formula keeps its precision with large means.
 * @returns null if one of them does not vary
 */
function pearson(xs: readonly number[], ys: readonly number[]): number | null {
  const n = xs.length;
  const mean = (of: readonly number[]) => of.reduce((sum, value) => sum + value, 0) / n;
  const meanX = mean(xs);
  const meanY = mean(ys);
  let xy = 0;
  let xx = 0;
  let yy = 0;
  for (let at = 0; at < n; at += 1) {
    const x = xs[at]! - meanX;
    const y = ys[at]! - meanY;
    xy += x * y;
    xx += x * x;
    yy += y * y;
  }
  if (xx === 0 || yy === 0) return null;
  return roundFigure('share', Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy))));
}
