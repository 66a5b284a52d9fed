import type { Pill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { Quote } from './quotes.ts';

/** The settings by which quotes become pills. */
export interface PillMaking {
  readonly symbol: string;
  readonly marketState: string;
  /** The same for all pills, or `spread`: computed by `confidenceOf`. */
  readonly confidence: number | 'spread';
  /** Prefix of every id; see `idStem`. */
  readonly stem: string;
  /** Suffix of every id; undefined when the file's own times are kept. */
  readonly run?: string | undefined;
  stamp(time: Micros): Micros;
}

/** Makes the pill of a quote. Its id depends only on file, line and run. */
export function quotePill(quote: Quote, making: PillMaking): Pill {
  const spread = spreadPercent(quote.bid, quote.ask);
  const suffix = making.run === undefined ? '' : `@${making.run}`;
  return {
    id: `${making.stem}-${quote.line}${suffix}`,
    timestamp: making.stamp(quote.timestamp),
    symbol: making.symbol,
    gross_spread_percent: spread,
    market_state: making.marketState,
    confidence: making.confidence === 'spread' ? confidenceOf(spread) : making.confidence,
  };
}

/**
 * Spread in percent of mid: `(ask − bid) / mid × 100` with `mid = (bid + ask) / 2`.
 * Negative where a quote is crossed.
 */
export function spreadPercent(bid: number, ask: number): number {
  // Halved before the sum: two prices near the largest double must not overflow.
  const mid = bid / 2 + ask / 2;
  const spread = ((ask - bid) / mid) * 100;
  return spread === 0 ? 0 : spread;
}

/** At this spread, in percent, `confidenceOf` is 50. */
export const HALF_CONFIDENCE_PERCENT = 0.05;

/**
 * Confidence in a quote by its spread, 0 … 100: `100 / (1 + spread / 0.05)`, two decimals. The
 * tighter the spread, the higher the confidence; a crossed quote (negative spread) has confidence 0.
 */
export function confidenceOf(spread: number): number {
  if (spread < 0) return 0;
  return Math.round(10_000 / (1 + spread / HALF_CONFIDENCE_PERCENT)) / 100;
}

/** Prefix of ids: the file's name without its extension, in portable characters. */
export function idStem(fileName: string): string {
  const stem = fileName.replace(/\.[^.]*$/, '').replaceAll(/[^A-Za-z0-9._-]/g, '_');
  return stem.slice(0, 64) || 'quotes';
}

const PAIR = /^([a-z]{3})[-_/]?([a-z]{3})(?![a-z0-9])/i;

/**
 * Symbol in a file's name: `usdjpy-2019.csv` is USD/JPY, by the currencies of ISO 4217.
 * @returns undefined when the name does not start with a currency pair
 */
export function symbolOfFile(fileName: string): string | undefined {
  const match = PAIR.exec(fileName);
  if (match === null) return undefined;
  const [base, quote] = [match[1]!.toUpperCase(), match[2]!.toUpperCase()];
  const currencies = Intl.supportedValuesOf('currency');
  const isPair = currencies.includes(base) && currencies.includes(quote) && base !== quote;
  return isPair ? `${base}/${quote}` : undefined;
}
