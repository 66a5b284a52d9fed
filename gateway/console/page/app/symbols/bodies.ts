import type { Bar } from '../../feed/market-reads.ts';

/** What the pages use of the API's answers about symbols. */
export interface Pill {
  readonly cursor: string;
  readonly id: string;
  readonly timestamp: string;
  readonly received_at: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
}

export interface Bars {
  readonly data: readonly (Bar & {
    readonly count: number;
    readonly p05: number;
    readonly p50: number;
    readonly p95: number;
    readonly final: boolean;
  })[];
}

export interface Summary {
  readonly count: number;
  readonly spread: Readonly<Record<'mean' | 'min' | 'max' | 'p05' | 'p50' | 'p95', number | null>>;
  readonly confidence: { readonly mean: number | null };
}

export interface States {
  readonly data: readonly {
    readonly market_state: string;
    readonly seconds: number;
    readonly share: number;
  }[];
}

export interface Cadence {
  readonly count: number;
  readonly interval_ms: Readonly<Record<'p50' | 'p95' | 'max', number | null>>;
  readonly gaps_count: number;
  readonly gaps: readonly {
    readonly from: string;
    readonly to: string;
    readonly seconds: number;
    readonly because: string;
  }[];
}

export interface Outliers {
  readonly threshold: number;
  readonly count: number;
  readonly data: readonly {
    readonly cursor: string;
    readonly timestamp: string;
    readonly gross_spread_percent: number;
    readonly median: number;
    readonly z: number | null;
  }[];
}

/** Lengths of bars in seconds, by name. */
export const STEPS = { '1s': 1, '1m': 60, '15m': 900, '1h': 3_600, '1d': 86_400 } as const;
export type Interval = keyof typeof STEPS;

/** The newest pill, its verdict and the chart are read again; each read is a call. */
export const LIVE_MS = 10_000;

/** The page of a symbol. */
export const symbolPage = (symbol: string): string =>
  `/app/symbol?${new URLSearchParams({ symbol })}`;

/** A path of the API with a symbol, and more parameters. */
export function readOf(
  path: string,
  symbol: string,
  more: Readonly<Record<string, string>> = {},
): string {
  return `${path}?${new URLSearchParams({ symbol, ...more })}`;
}
