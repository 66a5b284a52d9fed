import * as hdr from 'hdr-histogram-js';

/** A histogram in HdrHistogram's encoding, in µs, as the results hold it. */
export interface LatencySeries {
  readonly name: string;
  readonly encoded: string;
}

/** A point of the plot: `ninesOf(share)` to the right, ms up. */
export interface PercentilePoint {
  readonly series: string;
  readonly nines: number;
  readonly ms: number;
}

/** 0 for the median's 0 %, 1 for 90 %, 2 for 99 %, 3 for 99.9 %: each nine takes the same room. */
export function ninesOf(percentile: number): number {
  return Math.log10(1 / (1 - percentile / 100));
}

/** As many steps to each nine, so that the tail is drawn as finely as the body. */
const STEPS_PER_NINE = 40;

/**
 * The latency at each percentile, as far as the count of values carries it: the last point is the
 * one value in `count` that is the maximum.
 */
export function percentilePoints(all: readonly LatencySeries[]): PercentilePoint[] {
  return all.flatMap(({ name, encoded }) => {
    const histogram = hdr.decodeFromCompressedBase64(encoded);
    const { totalCount, maxValue } = histogram;
    if (totalCount === 0) return [];
    const last = Math.log10(totalCount);
    const steps = Math.ceil(last * STEPS_PER_NINE);
    return Array.from({ length: steps + 1 }, (_, step) => {
      const nines = steps === 0 ? 0 : (last * step) / steps;
      const micros = histogram.getValueAtPercentile(100 * (1 - 10 ** -nines));
      return { series: name, nines, ms: Math.min(maxValue, Math.max(1, micros)) / 1_000 };
    });
  });
}
