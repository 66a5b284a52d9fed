import * as hdr from 'hdr-histogram-js';

/** What a histogram says, in microseconds. */
export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Microsecond histogram, three significant digits, 1 µs to 120 s. */
export interface Latencies {
  record(micros: number): void;
  percentiles(): Percentiles;
  /** @param percentile from 0 to 100 */
  at(percentile: number): number;
  /** HdrHistogram V2, compressed, base64: for plots, and for adding runs up. */
  encoded(): string;
}

const HIGHEST_MICROS = 120_000_000;

export function createLatencies(): Latencies {
  const histogram = hdr.build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_MICROS,
    numberOfSignificantValueDigits: 3,
  });
  /** A percentile is told as the upper edge of its bucket, which may lie above the maximum. */
  const at = (percentile: number) => Math.min(maxOf(), histogram.getValueAtPercentile(percentile));
  const maxOf = () => (histogram.totalCount === 0 ? 0 : histogram.maxValue);
  return {
    at,
    record(micros) {
      histogram.recordValue(Math.min(HIGHEST_MICROS, Math.max(1, Math.round(micros))));
    },
    percentiles() {
      const [p50, p99, p999] = [at(50), at(99), at(99.9)];
      return { count: histogram.totalCount, p50, p99, p999, max: maxOf() };
    },
    encoded: () => hdr.encodeIntoCompressedBase64(histogram),
  };
}
