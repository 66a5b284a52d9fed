import * as hdr from 'hdr-histogram-js';
import { parse, type Spec, View } from 'vega';
import type { TimelineSecond } from './histogram.ts';

/** One run: its latencies in HdrHistogram's encoding, in µs, and second by second. */
export interface PlotSeries {
  readonly name: string;
  readonly encoded: string;
  readonly seconds: readonly TimelineSecond[];
}

/** Each series has a colour; its p50 and p99 differ by their dashes. */
interface Point {
  readonly series: string;
  readonly percentile?: 'p50' | 'p99';
  readonly ms: number;
}

/** The label of 0, 1, 2, 3, … nines: 0 %, 90 %, 99 %, 99.9 %, … */
const NINES_LABEL =
  "datum.value < 3 ? format(1 - pow(10, -datum.value), '.0%') : format(1 - pow(10, -datum.value), '.' + (datum.value - 2) + '%')";
/** Each nine has as many steps, so that the tail is drawn as finely as the body. */
const STEPS_PER_NINE = 40;

/** Latency by percentile; each nine is as wide as the one before, as HdrHistogram plots it. */
export function percentilePlot(title: string, series: readonly PlotSeries[]): Promise<string> {
  return plot(title, percentilePoints(series), 'nines', {
    title: 'percentile',
    values: [0, 1, 2, 3, 4, 5, 6],
    encode: { labels: { update: { text: { signal: NINES_LABEL } } } },
  });
}

/** p50 (dashed) and p99 of each second. */
export function timelinePlot(title: string, series: readonly PlotSeries[]): Promise<string> {
  const axis = { title: 'second of the run', tickMinStep: 1 };
  return plot(title, timelinePoints(series), 'second', axis);
}

/** 0 for 0 %, 1 for 90 %, 2 for 99 %, 3 for 99.9 %: each nine takes the same room. */
export function ninesOf(percentile: number): number {
  return Math.log10(1 / (1 - percentile / 100));
}

/**
 * The latency at each percentile, as far as the number of values supports it: the last point is
 * the one value in `count` that is the maximum.
 */
export function percentilePoints(all: readonly Omit<PlotSeries, 'seconds'>[]) {
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

/** p50 and p99 of each second; a second in which nothing was planned has no point. */
export function timelinePoints(all: readonly Omit<PlotSeries, 'encoded'>[]) {
  return all.flatMap(({ name, seconds }) =>
    (['p50', 'p99'] as const).flatMap((percentile) =>
      seconds.map((one) => {
        return { series: name, percentile, second: one.second, ms: one[percentile] / 1_000 };
      }),
    ),
  );
}

/** Draws lines of milliseconds over a field. @param xAxis its title, values and labels */
async function plot(title: string, points: Point[], field: string, xAxis: object) {
  const names = [...new Set(points.map(({ series }) => series))];
  const line = {
    x: { scale: 'x', field },
    y: { scale: 'y', field: 'ms' },
    stroke: { scale: 'colour', field: 'series' },
    strokeWidth: { value: 1.5 },
    strokeDash: { scale: 'dash', field: 'percentile' },
  };
  const legend = { symbolType: 'stroke', orient: 'top', columns: 2, labelLimit: 340 } as const;
  const hasDashes = points.some(({ percentile }) => percentile === 'p50');
  const domain = { data: 'points', field: 'ms' };
  const spec: Spec = {
    ...{ width: 760, height: 380, padding: 10, background: 'white', title },
    data: [{ name: 'points', values: points }],
    scales: [
      { name: 'x', type: 'linear', range: 'width', domain: { data: 'points', field } },
      // Logarithmic, because goals and stalls share one picture: latencies span four powers of ten.
      { name: 'y', type: 'log', range: 'height', nice: true, domain },
      { name: 'colour', type: 'ordinal', range: 'category', domain: names },
      { name: 'dash', type: 'ordinal', domain: ['p50', 'p99'], range: [[4, 3], []] },
    ],
    axes: [
      { scale: 'x', orient: 'bottom', grid: true, ...xAxis },
      { scale: 'y', orient: 'left', title: 'ms', grid: true, format: '~g' },
    ],
    legends: [
      { ...legend, stroke: 'colour' },
      ...(hasDashes ? [{ ...legend, strokeDash: 'dash' }] : []),
    ],
    marks: [
      {
        type: 'group',
        from: { facet: { name: 'line', data: 'points', groupby: ['series', 'percentile'] } },
        marks: [{ type: 'line', from: { data: 'line' }, encode: { enter: line } }],
      },
    ],
  };
  const view = new View(parse(spec), { renderer: 'none' });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}
