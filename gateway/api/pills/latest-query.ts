import { type Position, parsePosition } from '../../../schemas/position.ts';
import { type Parsed, refused } from '../server/parameters.ts';
import { readSymbols } from '../server/symbol-list.ts';

/** The parsed query of `GET /api/pills/latest`. */
export interface LatestQuery {
  readonly selection:
    | { readonly kind: 'newest' }
    | { readonly kind: 'one'; readonly symbol: string }
    | { readonly kind: 'many'; readonly symbols: readonly string[] };
  /** The position that the view must have reached. */
  readonly atLeast: Position | undefined;
}

/** Parses the query of `GET /api/pills/latest`, which its schema has checked. */
export function parseLatestQuery(query: {
  readonly symbol?: string;
  readonly symbols?: string;
  readonly at_least?: string;
}): Parsed<LatestQuery> {
  const { symbol, symbols, at_least: position } = query;
  if (symbol !== undefined && symbols !== undefined) {
    return refused('symbols', 'parameters_exclusive', 'Use `symbol` or `symbols`, not both.');
  }
  const atLeast = position === undefined ? undefined : parsePosition(position);
  if (position !== undefined && atLeast === undefined) {
    return refused('at_least', 'position_malformed', POSITION_HINT);
  }
  return { ok: true, value: { selection: selectionOf(symbol, symbols), atLeast } };
}

/** The form of a position that includes its epoch. */
export const POSITION_HINT =
  'Send a position, e.g. k7f3:0-95,3-140. For a cursor, prefix its epoch and a colon.';

function selectionOf(symbol?: string, list?: string): LatestQuery['selection'] {
  if (symbol !== undefined) return { kind: 'one', symbol };
  if (list !== undefined) return { kind: 'many', symbols: readSymbols(list) };
  return { kind: 'newest' };
}
