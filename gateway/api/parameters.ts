import type { FastifyRequest } from 'fastify';
import { isSymbol } from '../../schemas/pill.ts';
import { type Position, parsePosition } from '../../schemas/position.ts';
import { SYMBOLS_MAX } from './limits.ts';

/** What is wrong with one query parameter. */
export interface ParameterFault {
  readonly parameter: string;
  readonly code: string;
  readonly detail: string;
}

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly ParameterFault[] };

/** What `GET /api/pills/latest` is asked for. */
export interface LatestQuery {
  readonly ask:
    | { readonly kind: 'newest' }
    | { readonly kind: 'one'; readonly symbol: string }
    | { readonly kind: 'many'; readonly symbols: readonly string[] };
  /** The view must have come at least so far. */
  readonly atLeast: Position | undefined;
}

const KNOWN = ['symbol', 'symbols', 'at_least'];

/** Parses the query of `GET /api/pills/latest`; every fault at once. */
export function parseLatestQuery(query: URLSearchParams): Parsed<LatestQuery> {
  const faults = namingFaults(query, KNOWN);
  const symbol = query.get('symbol');
  const list = query.get('symbols');
  const position = query.get('at_least');
  let ask: LatestQuery['ask'] = { kind: 'newest' };
  if (symbol !== null && list !== null) {
    faults.push(fault('symbols', 'parameters_exclusive', 'Give symbol or symbols, not both.'));
  } else if (symbol !== null) {
    if (!isSymbol(symbol)) faults.push(fault('symbol', 'symbol_malformed', 'Not a symbol.'));
    ask = { kind: 'one', symbol };
  } else if (list !== null) {
    const symbols = [...new Set(list.split(','))];
    if (symbols.includes('')) {
      const hint = 'There is an empty symbol: give each once, with one comma between two.';
      faults.push(fault('symbols', 'symbol_malformed', hint));
    }
    if (symbols.length > SYMBOLS_MAX) {
      const hint = `${symbols.length} symbols, limit ${SYMBOLS_MAX}. Split the request.`;
      faults.push(fault('symbols', 'too_many', hint));
    }
    ask = { kind: 'many', symbols };
  }
  const atLeast = position === null ? undefined : parsePosition(position);
  if (position !== null && atLeast === undefined) {
    const hint = 'Not a position, e.g. k7f3:0-95,3-140. A cursor goes after its epoch and a colon.';
    faults.push(fault('at_least', 'position_malformed', hint));
  }
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: { ask, atLeast } };
}

/** The query as it was sent: what is given twice is there twice. */
export function queryOf({ url }: FastifyRequest): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
}

/** Parameters that are unknown, or given twice. */
export function namingFaults(query: URLSearchParams, known: readonly string[]): ParameterFault[] {
  const faults: ParameterFault[] = [];
  for (const name of new Set(query.keys())) {
    const shown = name.slice(0, 64).toWellFormed();
    if (!known.includes(name)) {
      const hint = `Known: ${known.join(', ')}.`;
      faults.push(fault(shown, 'parameter_unknown', hint));
    } else if (query.getAll(name).length > 1) {
      faults.push(fault(shown, 'parameter_repeated', 'Give it once.'));
    }
  }
  return faults;
}

export function fault(parameter: string, code: string, detail: string): ParameterFault {
  return { parameter, code, detail };
}
