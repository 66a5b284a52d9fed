import { ID_HINT, isId } from '../../../schemas/pill.ts';
import { type Parsed, refused } from '../server/parameters.ts';
import { readSymbols } from '../server/symbol-list.ts';

/** A query of `GET /api/market/verify`. */
export type VerifyQuery =
  | { readonly kind: 'symbol'; readonly symbol: string }
  | { readonly kind: 'symbols'; readonly symbols: readonly string[] }
  | { readonly kind: 'pill'; readonly symbol: string; readonly id: string }
  | { readonly kind: 'id'; readonly id: string };

/** Parses the query, which its schema has checked. */
export function parseVerifyQuery(query: {
  readonly symbol?: string;
  readonly symbols?: string;
  readonly id?: string;
}): Parsed<VerifyQuery> {
  const { symbol, symbols, id } = query;
  if (symbols !== undefined) {
    if (symbol !== undefined || id !== undefined) {
      return refused('symbols', 'parameters_exclusive', '`symbols` excludes `symbol` and `id`.');
    }
    return { ok: true, value: { kind: 'symbols', symbols: readSymbols(symbols) } };
  }
  if (id === undefined) {
    if (symbol === undefined) {
      return refused('symbol', 'missing', 'One of `symbol`, `symbols` and `id` is required.');
    }
    return { ok: true, value: { kind: 'symbol', symbol } };
  }
  if (!isId(id)) return refused('id', 'id_malformed', ID_HINT);
  return {
    ok: true,
    value: symbol === undefined ? { kind: 'id', id } : { kind: 'pill', symbol, id },
  };
}
