import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { RatedBucket } from './bodies.ts';

const HEIGHT_PX = 320;

/** Stated confidence against the share that narrowed; on the diagonal, both agree. */
export function CalibrationPlot(props: {
  readonly buckets: readonly RatedBucket[];
  readonly scale: number;
}) {
  const { buckets, scale } = props;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    const plot = new uPlot(optionsFor(element, scale), columnsOf(buckets, scale), element);
    const sized = new ResizeObserver(([entry]) => {
      plot.setSize({ width: entry!.contentRect.width, height: HEIGHT_PX });
    });
    sized.observe(element);
    const themed = new MutationObserver(() => plot.redraw(false));
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      sized.disconnect();
      themed.disconnect();
      plot.destroy();
    };
  }, [buckets, scale]);
  const label = `Calibration: share narrowed of ${buckets.length} ranges of confidence`;
  return <div class="chart" ref={box} role="img" aria-label={label} />;
}

/** x, low and high end of the interval, share, diagonal. */
function columnsOf(buckets: readonly RatedBucket[], scale: number): uPlot.AlignedData {
  return [
    buckets.map(({ mean_confidence: mean }) => mean),
    buckets.map(({ ci95 }) => ci95[1] * 100),
    buckets.map(({ ci95 }) => ci95[0] * 100),
    buckets.map(({ rate }) => rate * 100),
    buckets.map(({ mean_confidence: mean }) => (mean / scale) * 100),
  ];
}

/** Colours are properties of the box, so that the canvas follows the theme. */
function optionsFor(box: HTMLElement, scale: number): uPlot.Options {
  const colour = (name: 'color' | 'stroke' | 'fill' | 'borderTopColor') => () =>
    getComputedStyle(box)[name];
  const axis: uPlot.Axis = {
    stroke: colour('color'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: colour('borderTopColor'), width: 1 },
    ticks: { show: false },
  };
  const value = (_plot: uPlot, share: number | null) =>
    share === null || share === undefined ? '–' : `${share.toFixed(1)} %`;
  const edge = { width: 0, points: { show: false }, value };
  return {
    width: box.clientWidth,
    height: HEIGHT_PX,
    cursor: { drag: { x: false, y: false } },
    scales: { x: { time: false, range: [0, scale] }, y: { range: [0, 100] } },
    axes: [
      { ...axis, label: 'Stated confidence', labelFont: axis.font! },
      { ...axis, size: 56, values: (_plot, ticks) => ticks.map((tick) => `${tick} %`) },
    ],
    series: [
      { label: 'Confidence', value: (_plot, mean) => mean?.toFixed(1) ?? '–' },
      { ...edge, label: 'High' },
      { ...edge, label: 'Low' },
      {
        ...{ label: 'Narrowed', stroke: colour('stroke'), width: 1.5, value },
        points: { size: 7, width: 0, fill: colour('stroke') },
      },
      { label: 'As stated', stroke: colour('color'), dash: [4, 4], points: { show: false }, value },
    ],
    bands: [{ series: [1, 2], fill: colour('fill') }],
  };
}
