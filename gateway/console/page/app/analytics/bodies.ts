/** What the pages use of the API's answers about the market. */
export interface Movers {
  readonly window: string;
  readonly min_count: number;
  readonly data: readonly {
    readonly symbol: string;
    readonly now: number;
    readonly then: number;
    readonly change: number;
    readonly z: number | null;
    readonly count: number;
  }[];
}

export interface Confidence {
  readonly horizon: string;
  readonly definition: string;
  readonly scale: number;
  readonly min_n: number;
  readonly pills: { readonly all: number; readonly settled: number };
  readonly buckets: readonly Bucket[];
}

export interface Bucket {
  readonly from: number;
  readonly to: number;
  readonly n: number;
  readonly rate: number | null;
  readonly ci95: readonly [number, number] | null;
  readonly mean_confidence: number | null;
}

/** A range with enough pills that have an outcome. */
export interface RatedBucket extends Bucket {
  readonly rate: number;
  readonly ci95: readonly [number, number];
  readonly mean_confidence: number;
}

export interface Correlation {
  readonly interval: string;
  readonly symbols: readonly string[];
  readonly r: readonly (readonly (number | null)[])[];
  readonly n: readonly (readonly number[])[];
}
