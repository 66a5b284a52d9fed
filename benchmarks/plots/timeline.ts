import type { TimelineSecond } from '../timeline.ts';

/** One run, second by second. */
export interface TimelineSeries {
  readonly name: string;
  readonly seconds: readonly TimelineSecond[];
}

/** A point of the plot. */
export interface TimelinePoint {
  readonly series: string;
  readonly percentile: 'p50' | 'p99';
  readonly second: number;
  readonly ms: number;
}

/** p50 and p99 of each second; a second in which nothing was planned has no point. */
export function timelinePoints(all: readonly TimelineSeries[]): TimelinePoint[] {
  return all.flatMap(({ name, seconds }) =>
    (['p50', 'p99'] as const).flatMap((percentile) =>
      seconds.map((one) => ({
        series: name,
        percentile,
        second: one.second,
        ms: one[percentile] / 1_000,
      })),
    ),
  );
}
