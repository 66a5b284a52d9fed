import { robustZ } from '../../../lib/signal/rolling-window.ts';

/** A spread among the last ones of its symbol. */
export interface SpreadFigures {
  readonly value: number;
  /** Pills that it is held against. */
  readonly n: number;
  readonly median: number;
  readonly p01: number;
  readonly p99: number;
  /** Modified z-score (Iglewicz and Hoaglin 1993): 0.6745 × (value − median) / MAD. */
  readonly robustZ: number;
  /** Share of them that is not above it, 0 … 1. */
  readonly percentile: number;
}

/** √(π/2): makes the mean absolute deviation of a normal distribution its standard deviation. */
const MEAN_DEVIATION_SCALE = Math.sqrt(Math.PI / 2);

/**
 * Says how usual a spread is. Where more than half of the values are equal, so that the MAD is 0,
 * the mean absolute deviation takes its place, as statistics packages do for this score; where all
 * are equal, any other value is infinitely far.
 * @param values at least one; it is sorted in place
 */
export function spreadFigures(values: Float64Array, value: number): SpreadFigures {
  values.sort();
  const n = values.length;
  const median = quantile(values, 0.5);
  const distances = values.map((one) => Math.abs(one - median));
  let sum = 0;
  for (const distance of distances) sum += distance;
  distances.sort();
  const z = robustZ(value, median, quantile(distances, 0.5));
  const scale = (sum / n) * MEAN_DEVIATION_SCALE;
  const distance = value - median;
  return {
    ...{ value, n, median },
    p01: quantile(values, 0.01),
    p99: quantile(values, 0.99),
    robustZ: z ?? (distance === 0 ? 0 : distance / scale),
    percentile: countUpTo(values, value) / n,
  };
}

/** Between the two nearest of sorted values, as `quantileExactInclusive` of ClickHouse. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)]!;
  return below + (at - Math.floor(at)) * (sorted[Math.ceil(at)]! - below);
}

/** How many of sorted values are not above one. */
function countUpTo(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
