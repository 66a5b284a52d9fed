import { isSymbol } from '../../../schemas/pill.ts';
import { fault, namingFaults, type Parsed } from '../parameters.ts';
import { VERIFY_LIMITS } from './limits.ts';

/** What `GET /api/market/verify` is asked. */
export type VerifyQuestion =
  | { readonly kind: 'symbol'; readonly symbol: string }
  | { readonly kind: 'symbols'; readonly symbols: readonly string[] }
  | { readonly kind: 'pill'; readonly symbol: string; readonly id: string }
  | { readonly kind: 'id'; readonly id: string };

const KNOWN = ['symbol', 'symbols', 'id'];
export const ID_CHARS_MAX = 128;

/** Parses the query; every fault at once. */
export function parseVerifyQuestion(query: URLSearchParams): Parsed<VerifyQuestion> {
  const faults = namingFaults(query, KNOWN);
  const symbol = query.get('symbol');
  const list = query.get('symbols');
  const id = query.get('id');
  const refuse = (parameter: string, code: string, detail: string) =>
    void faults.push(fault(parameter, code, detail));
  if (symbol !== null && !isSymbol(symbol)) refuse('symbol', 'symbol_malformed', 'Not a symbol.');
  if (id !== null && !isId(id)) {
    refuse('id', 'id_malformed', `Not 1 to ${ID_CHARS_MAX} printable characters.`);
  }
  if (list !== null && (symbol !== null || id !== null)) {
    const hint = 'Give symbols alone, or symbol, or id with or without symbol.';
    refuse('symbols', 'parameters_exclusive', hint);
  }
  if (symbol === null && list === null && id === null && faults.length === 0) {
    refuse('symbol', 'missing', 'Give symbol, symbols or id.');
  }
  const symbols = [...new Set(list?.split(','))];
  if (symbols.includes('')) {
    const hint = 'There is an empty symbol: give each once, with one comma between two.';
    refuse('symbols', 'symbol_malformed', hint);
  }
  if (symbols.length > VERIFY_LIMITS.symbolsMax) {
    const hint = `${symbols.length} symbols, limit ${VERIFY_LIMITS.symbolsMax}. Split the request.`;
    refuse('symbols', 'too_many', hint);
  }
  if (faults.length > 0) return { ok: false, faults };
  if (list !== null) return { ok: true, value: { kind: 'symbols', symbols } };
  if (id === null) return { ok: true, value: { kind: 'symbol', symbol: symbol! } };
  if (symbol === null) return { ok: true, value: { kind: 'id', id } };
  return { ok: true, value: { kind: 'pill', symbol, id } };
}

function isId(id: string): boolean {
  return id.isWellFormed() && /^[^\p{C}\p{Zl}\p{Zp}\ufffd]{1,128}$/u.test(id);
}
