import { Type } from 'typebox';
import { isTestSymbol } from '../../../schemas/pill.ts';

/** A symbol without a pill, with the known symbol that was probably meant. */
export interface UnknownSymbol {
  readonly symbol: string;
  readonly did_you_mean?: string;
}

/** The latest pill of each symbol, as far as known symbols follow from it. */
interface KnownSymbols {
  isReady(): boolean;
  get(symbol: string): unknown;
  rows(): Iterable<{ readonly pill: { readonly symbol: string } }>;
}

export type FindUnknown = (symbols: readonly string[]) => readonly UnknownSymbol[];

/** The part of a symbol before its venue: `7203` of `7203.T`. */
const stemOf = (symbol: string) => /^[^.:]+/.exec(symbol)?.[0] ?? symbol;

/**
 * Makes a function that finds the symbols without any pill in the current log. The known symbol of
 * the same stem, if there is exactly one, was probably meant. While the latest pills are still read,
 * no symbol counts as unknown.
 */
export function createFindUnknown(known: KnownSymbols): FindUnknown {
  return (symbols) => {
    const unknown = known.isReady() ? symbols.filter((one) => known.get(one) === undefined) : [];
    if (unknown.length === 0) return [];
    const meant = new Map<string, string[]>(unknown.map((symbol) => [stemOf(symbol), []]));
    for (const { pill } of known.rows()) {
      if (!isTestSymbol(pill.symbol)) meant.get(stemOf(pill.symbol))?.push(pill.symbol);
    }
    return unknown.map((symbol) => {
      const [first, ...others] = meant.get(stemOf(symbol))!;
      return first === undefined || others.length > 0
        ? { symbol }
        : { symbol, did_you_mean: first };
    });
  };
}

/** A sentence about a symbol without a pill. */
export function noPillText({ symbol, did_you_mean: meant }: UnknownSymbol): string {
  const suggestion = meant === undefined ? '' : ` Perhaps you mean ${meant}.`;
  return `No pill of ${symbol} was ever received.${suggestion}`;
}

/** The member `unknown_symbols` of an answer. */
export const UNKNOWN_SYMBOLS = {
  unknown_symbols: Type.Optional(
    Type.Array(
      Type.Object({
        symbol: Type.String({ examples: ['7203'] }),
        did_you_mean: Type.Optional(Type.String({ examples: ['7203.T'] })),
      }),
      { description: 'Requested symbols without any pill in the current log; absent if none is' },
    ),
  ),
};

/** The member `unknown_symbols`, if there are any. */
export const unknownMember = (unknown: readonly UnknownSymbol[]) =>
  unknown.length === 0 ? {} : { unknown_symbols: unknown };
