import * as hdr from 'hdr-histogram-js';

/** Latencies of what was planned in one second of a run, in µs. */
export interface TimelineSecond {
  /** From the first planned send. */
  readonly second: number;
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

/** Latencies by the second in which they were planned: a stall shows where it was. */
export interface Timeline {
  /** @param planned and @param micros in µs; `planned` of the clock that `startMicros` is of */
  record(planned: number, micros: number): void;
  seconds(): TimelineSecond[];
}

/** A run is at most an hour long; what is planned later counts with its last second. */
const SECONDS_MAX = 3_600;
const HIGHEST_MICROS = 120_000_000;

export function createTimeline(startMicros: number): Timeline {
  const histograms = new Map<number, hdr.Histogram>();
  return {
    record(planned, micros) {
      const second = Math.min(SECONDS_MAX, Math.max(0, Math.floor((planned - startMicros) / 1e6)));
      let histogram = histograms.get(second);
      if (histogram === undefined) {
        // Two digits: some 14 KiB a second, 50 MiB at the bound.
        histogram = hdr.build({
          lowestDiscernibleValue: 1,
          highestTrackableValue: HIGHEST_MICROS,
          numberOfSignificantValueDigits: 2,
        });
        histograms.set(second, histogram);
      }
      histogram.recordValue(Math.min(HIGHEST_MICROS, Math.max(1, Math.round(micros))));
    },
    seconds() {
      return [...histograms]
        .sort(([one], [other]) => one - other)
        .map(([second, histogram]) => ({
          second,
          count: histogram.totalCount,
          p50: Math.min(histogram.maxValue, histogram.getValueAtPercentile(50)),
          p99: Math.min(histogram.maxValue, histogram.getValueAtPercentile(99)),
        }));
    },
  };
}
