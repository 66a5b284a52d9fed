/** Venues with a calendar: ISO 10383 codes, and FX for currency pairs. */
export const VENUES = [
  'FX',
  'XASX',
  'XBKK',
  'XBOM',
  'XHKG',
  'XIDX',
  'XKLS',
  'XKRX',
  'XNSE',
  'XNZE',
  'XPHS',
  'XSES',
  'XSHE',
  'XSHG',
  'XTAI',
  'XTKS',
] as const;
export type Venue = (typeof VENUES)[number];

/** Suffixes and indices in the notation of Yahoo Finance. */
const BY_SUFFIX: ReadonlyMap<string, Venue> = new Map([
  ['T', 'XTKS'],
  ['HK', 'XHKG'],
  ['SS', 'XSHG'],
  ['SZ', 'XSHE'],
  ['KS', 'XKRX'],
  ['KQ', 'XKRX'],
  ['TW', 'XTAI'],
  ['TWO', 'XTAI'],
  ['BO', 'XBOM'],
  ['NS', 'XNSE'],
  ['SI', 'XSES'],
  ['AX', 'XASX'],
  ['NZ', 'XNZE'],
  ['BK', 'XBKK'],
  ['JK', 'XIDX'],
  ['KL', 'XKLS'],
  ['PS', 'XPHS'],
]);
const BY_INDEX: ReadonlyMap<string, Venue> = new Map([
  ['^N225', 'XTKS'],
  ['^HSI', 'XHKG'],
  ['^AXJO', 'XASX'],
  ['^KS11', 'XKRX'],
  ['^TWII', 'XTAI'],
  ['^STI', 'XSES'],
  ['^NSEI', 'XNSE'],
  ['^BSESN', 'XBOM'],
]);

// ISO 4217 without the codes that begin with X: metals, which pause for an hour each day, and
// baskets. Cryptocurrencies trade at weekends and are not in ISO 4217.
const CURRENCIES: ReadonlySet<string> = new Set(
  Intl.supportedValuesOf('currency').filter((code) => !code.startsWith('X')),
);

/**
 * Venue of a symbol, by its form alone; undefined when no calendar is known. `TEST:` symbols have
 * none: they are active at weekends too.
 */
export function venueOf(symbol: string): Venue | undefined {
  if (symbol.includes(':')) return undefined;
  if (symbol.startsWith('^')) return BY_INDEX.get(symbol);
  const dot = symbol.lastIndexOf('.');
  if (dot > 0) return BY_SUFFIX.get(symbol.slice(dot + 1));
  const [base, quote, ...more] = symbol.split('/');
  const pair = base !== undefined && quote !== undefined && more.length === 0 && base !== quote;
  return pair && CURRENCIES.has(base) && CURRENCIES.has(quote) ? 'FX' : undefined;
}
