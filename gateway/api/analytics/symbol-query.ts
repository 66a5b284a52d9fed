import type { Static, TObject, TProperties, TSchema } from 'typebox';
import type { Table } from '../server/csv.ts';
import { texts } from '../server/example.ts';
import { symbolOf } from '../server/schemas.ts';
import { parseWindow, type Window, windowBody } from '../server/time-range.ts';
import { type AnalyticsQuery, laterHalf } from './analytics-query.ts';
import type { Freshness } from './analytics-reader.ts';
import { WINDOW, WindowSchema, windowParameters } from './window-parameters.ts';

export const SYMBOL = symbolOf();
const SHARED = { symbol: SYMBOL, ...WINDOW };

export interface SymbolRequest {
  /** `*`: all symbols. */
  readonly symbol: string;
  readonly window: Window;
  /** Both as parameters of a statement: `symbol`, `since` and `until`. */
  readonly parameters: Readonly<Record<'symbol' | 'since' | 'until', string>>;
}

/** A query about a symbol over a window of time: adds both to its parameters and its answer. */
export function symbolQuery<P extends TProperties>(
  query: Pick<
    AnalyticsQuery<P, SymbolRequest>,
    'name' | 'summary' | 'description' | 'parameters' | 'answer' | 'csvExample'
  > & {
    /** Schema of the symbol, for queries that accept `*` or no symbol. */
    readonly symbol?: TSchema;
    range(symbol: string): { readonly byDefaultS: number; readonly maxS: number };
    run(
      request: SymbolRequest,
      own: Static<TObject<P>>,
      freshness: Freshness,
    ): Promise<{ readonly body: object; readonly table: Table }>;
  },
): AnalyticsQuery<typeof SHARED & P, SymbolRequest & { readonly own: Static<TObject<P>> }> {
  const { symbol: schema = SYMBOL, range, run, ...rest } = query;
  const parameters = { ...SHARED, symbol: schema, ...query.parameters };
  return {
    ...rest,
    // Both halves are read below without their types, which the compiler cannot split.
    parameters: parameters as typeof SHARED & P,
    answer: { ...texts({ symbol: '7203.T' }), window: WindowSchema, ...query.answer },
    parse(all, now) {
      const { symbol = '*', ...ends } = all as { symbol?: string; from?: string; to?: string };
      const own = all as unknown as Static<TObject<P>>;
      const parsed = parseWindow(ends, range(symbol), now);
      if (!parsed.ok) return parsed;
      const window = parsed.value;
      const parameters = { symbol, ...windowParameters(window) };
      return { ok: true, value: { symbol, window, parameters, own } };
    },
    narrower: ({ window }) => laterHalf(window),
    async run(request, freshness) {
      const { body, table } = await run(request, request.own, freshness);
      const { symbol, window } = request;
      return { body: { symbol, window: windowBody(window), ...body }, table };
    },
  };
}
