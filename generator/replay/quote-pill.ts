import type { Pill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { Quote } from './quotes.ts';

/** How the quotes of a file become pills. */
export interface PillMaking {
  readonly symbol: string;
  readonly marketState: string;
  /** The same for all pills, or `spread`: computed by `confidenceOf`. */
  readonly confidence: number | 'spread';
  /** Begins every id; see `idStem`. */
  readonly stem: string;
  /** Ends every id; undefined where the file's own times are kept. */
  readonly run: string | undefined;
  stamp(time: Micros): Micros;
}

/** Makes the pill of a quote. Its id is decided by file, line and run alone. */
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
  // Halves before the sum: two prices near the largest double must not overflow.
  const mid = bid / 2 + ask / 2;
  const spread = ((ask - bid) / mid) * 100;
  return spread === 0 ? 0 : spread;
}

/** At this spread, in percent, `confidenceOf` is one half. */
export const HALF_CONFIDENCE_PERCENT = 0.05;

/**
 * Confidence in a quote by its spread, 0 … 1: `1 / (1 + spread / 0.05)`, four decimals. A tight
 * market is a sure one; a crossed quote (negative spread) has none.
 */
export function confidenceOf(spread: number): number {
  if (spread < 0) return 0;
  return Math.round(10_000 / (1 + spread / HALF_CONFIDENCE_PERCENT)) / 10_000;
}

/** What ids begin with: the file's name without its ending, in characters safe everywhere. */
export function idStem(fileName: string): string {
  const stem = fileName.replace(/\.[^.]*$/, '').replaceAll(/[^A-Za-z0-9._-]/g, '_');
  return stem.slice(0, 64) || 'quotes';
}

const PAIR = /^([a-z]{3})[-_/]?([a-z]{3})(?![a-z0-9])/i;

/**
 * Symbol that a file's name tells: `usdjpy-2019.csv` is USD/JPY, by the currencies of ISO 4217.
 * @returns undefined when the name starts with no pair of currencies.
 */
export function symbolOfFile(fileName: string): string | undefined {
  const match = PAIR.exec(fileName);
  if (match === null) return undefined;
  const [base, quote] = [match[1]!.toUpperCase(), match[2]!.toUpperCase()];
  const currencies = Intl.supportedValuesOf('currency');
  const isPair = currencies.includes(base) && currencies.includes(quote) && base !== quote;
  return isPair ? `${base}/${quote}` : undefined;
}
