import type { Verdict } from '../../../../sdk/exports.ts';
import type { SymbolFacts, Venue } from '../market/symbol-rows.ts';
import { readJson } from './read-json.ts';
import { headersOf, type Viewer } from './settings.ts';

/** A step of a symbol's chart. */
export interface Bar {
  /** ISO 8601. */
  readonly start: string;
  readonly high: number;
  readonly low: number;
  readonly close: number;
}

export type MarketReads = ReturnType<typeof createMarketReads>;

/** Reads of the page besides the stream. */
export function createMarketReads(viewer: () => Viewer) {
  const base = viewer().kind === 'demo' ? '/console/demo' : '/api';
  const get = (path: string, query: Readonly<Record<string, string>>, signal: AbortSignal) =>
    readJson(path, query, headersOf(viewer()), signal);
  return {
    /** @param symbols at most 100 */
    async market(symbols: readonly string[], signal: AbortSignal) {
      return (await get('/console/market', { symbols: symbols.join() }, signal)) as {
        readonly symbols: Readonly<Record<string, SymbolFacts>>;
        readonly venues: Readonly<Record<string, Venue>>;
      };
    },
    async verdict(symbol: string, signal: AbortSignal): Promise<Verdict> {
      return (await get(`${base}/market/verify`, { symbol }, signal)) as Verdict;
    },
    /** The bars of a range, oldest first. */
    async bars(symbol: string, range: object, signal: AbortSignal): Promise<readonly Bar[]> {
      const query = { symbol, limit: '1000', ...range };
      const { data } = (await get(`${base}/analytics/bars`, query, signal)) as {
        readonly data: readonly Bar[];
      };
      return data.toReversed();
    },
  };
}
