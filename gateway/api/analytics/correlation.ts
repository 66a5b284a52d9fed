import { setImmediate as turn } from 'node:timers/promises';
import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { isSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Parsed } from '../parameters.ts';
import { parseWindow, toldWindow, type Window } from '../time-range.ts';
import { BAR_RANGES, CORRELATED_MAX, CORRELATED_STEPS_MAX, RANGES } from './limits.ts';
import { WINDOW, WINDOW_EXAMPLE, WindowSchema, whole } from './parameters.ts';
import { pearson } from './pearson.ts';
import { lessTime, NumberOrNull, type Question, type Sources } from './question.ts';

const INTERVALS = ['1s', '1m', '1h'] as const;
type Step = (typeof INTERVALS)[number];

const QUERY = {
  symbols: Type.String({
    pattern: `^[^,]+(,[^,]+){1,${CORRELATED_MAX - 1}}$`,
    description: `Symbols, by commas: 2 to ${CORRELATED_MAX}, each once`,
  }),
  interval: Type.Optional(
    Type.Enum([...INTERVALS], { description: 'Of the bars; `1m` by default' }),
  ),
  ...WINDOW,
  min_n: whole(3, 10_000, 30, 'With fewer common changes r is null'),
};

interface Asked {
  readonly symbols: readonly string[];
  readonly interval: Step;
  readonly minN: number;
  readonly window: Window;
}

const OF = "change of the bar's close";

/** `GET /api/analytics/correlation`. */
export function correlationQuestion({ desk }: Sources): Question<typeof QUERY, Asked> {
  return {
    name: 'correlation',
    summary: 'How the spreads of symbols move together',
    description:
      "Pearson's r of the changes of the bars' closes. A change counts where both neighbouring bars " +
      'of a symbol exist, and for a pair where both symbols have it. r is null below `min_n`, and ' +
      `where one does not vary. At most ${CORRELATED_STEPS_MAX} bars a symbol.`,
    query: QUERY,
    answer: {
      window: WindowSchema,
      interval: Type.String(),
      of: Type.String(),
      method: Type.String(),
      min_n: Type.Integer(),
      symbols: Type.Array(Type.String()),
      r: Type.Array(Type.Array(NumberOrNull)),
      n: Type.Array(Type.Array(Type.Integer())),
    },
    csvExample: 'symbol,other,r,n\r\n7203.T,6758.T,0.42,310\r\n',
    example: {
      window: WINDOW_EXAMPLE,
      ...{ interval: '1m', of: OF, method: 'pearson', min_n: 30 },
      symbols: ['7203.T', '6758.T'],
      r: [
        [1, 0.42],
        [0.42, 1],
      ],
      n: [
        [331, 310],
        [310, 330],
      ],
    },
    parse,
    less: ({ window }) => ({
      ...lessTime(window),
      hint: 'Half of the time may fit, or fewer symbols.',
    }),
    async find({ symbols, interval, minN, window }) {
      const { stepS } = BAR_RANGES[interval];
      const rows = await desk.ask<{ symbol: string; step: number; close: number }>(
        `SELECT symbol, intDiv(toUnixTimestamp(start), {step:UInt32}) AS step, close
         FROM bars(symbols = {symbols:Array(String)}, step_s = {step:UInt32},
           since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})
         ORDER BY symbol, step`,
        {
          symbols,
          step: stepS,
          since: decimalSeconds(window.since),
          until: decimalSeconds(window.until),
        },
      );
      const changes = changesOf(rows);
      const pairs = await correlateAll(
        symbols.map((symbol) => changes.get(symbol)),
        minN,
      );
      const body = {
        window: toldWindow(window),
        ...{ interval, of: OF, method: 'pearson', min_n: minN, symbols },
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

type Query = Parameters<Question<typeof QUERY, Asked>['parse']>[0];

function parse(query: Query, now: Micros): Parsed<Asked> {
  const { interval = '1m', min_n: minN = 30 } = query;
  const symbols = query.symbols.split(',');
  const wrong = symbols.find((symbol) => !isSymbol(symbol));
  const fault = (code: string, detail: string) =>
    ({ ok: false, faults: [{ parameter: 'symbols', code, detail }] }) as const;
  if (wrong !== undefined) {
    return fault('symbol_malformed', `${wrong.slice(0, 64).toWellFormed()} is not a symbol.`);
  }
  if (new Set(symbols).size < symbols.length) {
    return fault('symbol_repeated', 'Give each symbol once.');
  }
  const { stepS } = BAR_RANGES[interval];
  const maxS = Math.min(RANGES.correlation.maxS, CORRELATED_STEPS_MAX * stepS);
  const byDefaultS = Math.min(RANGES.correlation.byDefaultS, maxS);
  const window = parseWindow(query, { byDefaultS, maxS }, now);
  if (!window.ok) return window;
  const step = stepS * 1e6;
  const since = Math.floor(window.value.since / step) * step;
  const until = Math.ceil(window.value.until / step) * step;
  return { ok: true, value: { symbols, interval, minN, window: { since, until } } };
}

/** By symbol: change of the close from the bar before, by step of time. */
function changesOf(rows: readonly { symbol: string; step: number; close: number }[]) {
  const changes = new Map<string, Map<number, number>>();
  for (const [at, { symbol, step, close }] of rows.entries()) {
    const before = rows[at - 1];
    if (before?.symbol !== symbol || before.step !== step - 1) continue;
    let own = changes.get(symbol);
    if (own === undefined) {
      own = new Map();
      changes.set(symbol, own);
    }
    own.set(step, close - before.close);
  }
  return changes;
}

interface Pair {
  readonly r: number | null;
  readonly n: number;
}

type Changes = ReadonlyMap<number, number> | undefined;

/** Each pair once; others have their turn in between. */
async function correlateAll(changes: readonly Changes[], minN: number): Promise<Pair[][]> {
  const pairs: Pair[][] = changes.map(() => []);
  for (const [one, xs] of changes.entries()) {
    for (const [other, ys] of changes.slice(0, one + 1).entries()) {
      const pair = correlate(xs, ys, minN);
      pairs[one]![other] = pair;
      pairs[other]![one] = pair;
      await turn();
    }
  }
  return pairs;
}

function correlate(
  one: ReadonlyMap<number, number> = new Map(),
  other: ReadonlyMap<number, number> = new Map(),
  minN: number,
): Pair {
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
