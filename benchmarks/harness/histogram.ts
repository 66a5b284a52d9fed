import * as hdr from 'hdr-histogram-js';

/** Percentiles of a histogram, in µs. */
export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Percentiles with the whole histogram, in HdrHistogram's encoding. */
export type Spread = Percentiles & { readonly encoded: string };

type Latencies = ReturnType<typeof createLatencies>;

const HIGHEST_MICROS = 120_000_000;

/** Histogram of microseconds, 1 µs to 120 s. @param digits significant digits */
export function createLatencies(digits: 2 | 3 = 3) {
  const histogram = hdr.build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_MICROS,
    numberOfSignificantValueDigits: digits,
  });
  const percentiles = (): Percentiles => {
    const max = histogram.totalCount === 0 ? 0 : histogram.maxValue;
    // A percentile is the upper edge of its bucket, which may lie above the maximum.
    const at = (percentile: number) => Math.min(max, histogram.getValueAtPercentile(percentile));
    return {
      count: histogram.totalCount,
      p50: at(50),
      p90: at(90),
      p99: at(99),
      p999: at(99.9),
      max,
    };
  };
  return {
    record(micros: number) {
      histogram.recordValue(Math.min(HIGHEST_MICROS, Math.max(1, Math.round(micros))));
    },
    percentiles,
    /** Encoded as HdrHistogram V2, compressed, base64: for plots, and for adding up runs. */
    spread: (): Spread => ({
      ...percentiles(),
      encoded: hdr.encodeIntoCompressedBase64(histogram),
    }),
  };
}

/** Latencies in µs of everything that was planned in one second after the first planned send. */
export interface TimelineSecond extends Pick<Percentiles, 'count' | 'p50' | 'p99'> {
  readonly second: number;
}

/** A run lasts at most an hour; anything planned later counts in the last second. */
const SECONDS_MAX = 3_600;

/** Latencies by the second in which they were planned, to show when a stall happened. */
export function createTimeline(startMicros: number) {
  // Two digits take some 14 KiB a second, 50 MiB at the bound.
  const bySecond = new Map<number, Latencies>();
  return {
    /** @param planned in µs of the clock that `startMicros` was read from */
    record(planned: number, micros: number) {
      const second = Math.min(SECONDS_MAX, Math.max(0, Math.floor((planned - startMicros) / 1e6)));
      const latencies = bySecond.get(second) ?? createLatencies(2);
      bySecond.set(second, latencies);
      latencies.record(micros);
    },
    seconds(): TimelineSecond[] {
      return [...bySecond]
        .sort(([one], [other]) => one - other)
        .map(([second, latencies]) => {
          const { count, p50, p99 } = latencies.percentiles();
          return { second, count, p50, p99 };
        });
    },
  };
}
