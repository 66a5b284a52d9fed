import { hintForSymbol, isSymbol } from '../../../schemas/pill.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import { type Explained, explained } from './form.ts';
import { parameterFault } from './parameters.ts';
import { optionalText } from './schemas.ts';

/** Schema of `symbols`. @param more what else the description says */
export const symbolList = (max: number, more: string) =>
  optionalText(`Up to ${max} symbols, separated by commas; ${more}`, {
    pattern: listPattern(1, max),
    examples: ['7203.T,0700.HK'],
  });

/** The pattern of a list of symbols; each symbol is checked by itself. */
export const listPattern = (min: number, max: number) =>
  explained(`^[^,]+(,[^,]+){${min - 1},${max - 1}}$`, (list) => listFault(list, min, max));

function listFault(list: string, min: number, max: number): Explained {
  const symbols = list.split(',');
  if (symbols.includes('')) {
    const hint = 'The list has an empty symbol: separate symbols with single commas.';
    return ['symbol_malformed', hint];
  }
  const { length } = symbols;
  return length < min
    ? ['too_few', `At least ${min} symbols are required, separated by commas.`]
    : ['too_many', `${length} symbols, limit ${max}. Split the request.`];
}

/** The symbols of a list, each once; malformed symbols stay in the list. */
export const readSymbols = (list: string): string[] => [...new Set(list.split(','))];

/** The symbols of a list whose length the schema has checked, each once; a malformed one is a fault. */
export function readWellFormedSymbols(list: string, faults: ParameterFault[]): string[] {
  const symbols = readSymbols(list);
  const malformed = symbols.find((symbol) => !isSymbol(symbol));
  if (malformed !== undefined) {
    const shown = malformed.slice(0, 64).toWellFormed();
    const hint = `"${shown}": ${hintForSymbol(malformed)}`;
    faults.push(parameterFault('symbols', 'symbol_malformed', hint));
  }
  return symbols;
}

/** The entry of a malformed symbol in `errors` of an answer; the client's own text is cut. */
export function symbolErrors(symbols: readonly string[]) {
  const malformed = symbols.filter((symbol) => !isSymbol(symbol));
  const entries = malformed.map((text) => {
    const error = { code: 'symbol_malformed', detail: hintForSymbol(text) };
    return [text.slice(0, 64).toWellFormed(), error] as const;
  });
  return Object.fromEntries(entries);
}
