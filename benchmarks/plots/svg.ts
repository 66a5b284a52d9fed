import { parse, type Spec, View } from 'vega';
import { type LatencySeries, percentilePoints } from './percentiles.ts';
import { type TimelineSeries, timelinePoints } from './timeline.ts';

const SIZE = { width: 760, height: 380, padding: 10, background: 'white' } as const;
const COLOURS = { name: 'colour', type: 'ordinal', range: 'category' } as const;
/** Goals and stalls in one picture: latencies span four powers of ten. */
const MS = {
  name: 'y',
  type: 'log',
  range: 'height',
  nice: true,
  domain: { data: 'points', field: 'ms' },
} as const;
const MS_AXIS = { scale: 'y', orient: 'left', title: 'ms', grid: true, format: '~g' } as const;

/** Latency by percentile, each nine as wide as the one before, as HdrHistogram plots it. */
export function percentilePlot(title: string, series: readonly LatencySeries[]): Promise<string> {
  return render({
    ...SIZE,
    title,
    data: [{ name: 'points', values: percentilePoints(series) }],
    scales: [
      { name: 'x', type: 'linear', range: 'width', domain: { data: 'points', field: 'nines' } },
      MS,
      { ...COLOURS, domain: series.map(({ name }) => name) },
    ],
    axes: [
      {
        ...{ scale: 'x', orient: 'bottom', title: 'percentile', grid: true, values: NINES },
        encode: { labels: { update: { text: { signal: NINES_LABEL } } } },
      },
      MS_AXIS,
    ],
    legends: [
      { stroke: 'colour', symbolType: 'stroke', orient: 'top', columns: 2, labelLimit: 340 },
    ],
    marks: [linesBy(['series'], { x: 'nines' })],
  });
}

const NINES = [0, 1, 2, 3, 4, 5, 6];
/** 0 %, 90 %, 99 %, 99.9 %, … */
const NINES_LABEL =
  "datum.value < 3 ? format(1 - pow(10, -datum.value), '.0%') : format(1 - pow(10, -datum.value), '.' + (datum.value - 2) + '%')";

/** p50 (dashed) and p99 of each second. */
export function timelinePlot(title: string, series: readonly TimelineSeries[]): Promise<string> {
  return render({
    ...SIZE,
    title,
    data: [{ name: 'points', values: timelinePoints(series) }],
    scales: [
      { name: 'x', type: 'linear', range: 'width', domain: { data: 'points', field: 'second' } },
      MS,
      { ...COLOURS, domain: series.map(({ name }) => name) },
      { name: 'dash', type: 'ordinal', domain: ['p50', 'p99'], range: [[4, 3], []] },
    ],
    axes: [
      { scale: 'x', orient: 'bottom', title: 'second of the run', grid: true, tickMinStep: 1 },
      MS_AXIS,
    ],
    legends: [
      { stroke: 'colour', symbolType: 'stroke', orient: 'top', columns: 2, labelLimit: 340 },
      { strokeDash: 'dash', symbolType: 'stroke', orient: 'top', symbolSize: 400 },
    ],
    marks: [linesBy(['series', 'percentile'], { x: 'second', dash: 'percentile' })],
  });
}

function linesBy(
  groupby: string[],
  { x, dash }: { readonly x: string; readonly dash?: string },
): NonNullable<Spec['marks']>[number] {
  const strokeDash = dash === undefined ? {} : { strokeDash: { scale: 'dash', field: dash } };
  return {
    type: 'group',
    from: { facet: { name: 'line', data: 'points', groupby } },
    marks: [
      {
        type: 'line',
        from: { data: 'line' },
        encode: {
          enter: {
            x: { scale: 'x', field: x },
            y: { scale: 'y', field: 'ms' },
            stroke: { scale: 'colour', field: 'series' },
            strokeWidth: { value: 1.5 },
            ...strokeDash,
          },
        },
      },
    ],
  };
}

async function render(spec: Spec): Promise<string> {
  const view = new View(parse(spec), { renderer: 'none' });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}
