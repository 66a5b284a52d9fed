import type { Percentiles } from '../histogram.ts';

/** @param histogram upper µs of each bucket, rising, and its count */
export function percentilesOf(
  histogram: readonly (readonly [upperMicros: number, count: number])[],
): Percentiles {
  const count = histogram.reduce((sum, [, of]) => sum + of, 0);
  const at = (share: number) => {
    const rank = Math.max(1, Math.ceil(count * share));
    let seen = 0;
    for (const [upper, of] of histogram) {
      seen += of;
      if (seen >= rank) return upper;
    }
    return 0;
  };
  return { count, p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
}

/** The value in the middle; of an even number the upper of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
