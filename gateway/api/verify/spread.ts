import { robustZ } from '../../../domain/market/cadence/rolling-window.ts';

/** A spread compared with the last spreads of its symbol. */
export type SpreadFigures = ReturnType<typeof spreadFigures>;

/** √(π/2): scales the mean absolute deviation of a normal distribution to its standard deviation. */
const MEAN_DEVIATION_SCALE = Math.sqrt(Math.PI / 2);

/**
 * Computes how usual a spread is. If more than half of the values are equal, the MAD is 0 and the
 * mean absolute deviation takes its place, as in statistics packages; if all values are equal, the
 * score of any other value is infinite.
 * @param values at least one; sorted in place
 */
export function spreadFigures(values: Float64Array, value: number) {
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
    value,
    /** Number of spreads compared. */
    n,
    median,
    p01: quantile(values, 0.01),
    p99: quantile(values, 0.99),
    /** Modified z-score (Iglewicz and Hoaglin 1993): 0.6745 × (value − median) / MAD. */
    robustZ: z ?? (distance === 0 ? 0 : distance / scale),
    /** Share of the spreads that are not above the value, 0 … 1. */
    percentile: countUpTo(values, value) / n,
  };
}

/** Interpolates between the two nearest values, like ClickHouse's `quantileExactInclusive`. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)]!;
  return below + (at - Math.floor(at)) * (sorted[Math.ceil(at)]! - below);
}

/** How many of the sorted values are not above `value`. */
export function countUpTo<T extends number | string>(sorted: ArrayLike<T>, value: T): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
