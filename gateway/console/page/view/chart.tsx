import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Bar } from '../feed/market-reads.ts';
import { formatSpread } from './format.ts';

/** A longer pause than this many steps interrupts the line. */
const GAP_STEPS = 10;
const HEIGHT_PX = 300;

/** The spread over time: a line of the last spread of each step, within a band from low to high. */
export function Chart(props: {
  readonly bars: readonly Bar[];
  readonly stepS: number;
  readonly label: string;
}) {
  const { bars, stepS, label } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  useEffect(() => {
    const made = new uPlot(optionsFor(box.current!, stepS), columnsOf(bars, stepS), box.current!);
    plot.current = made;
    const sized = new ResizeObserver(([entry]) => {
      made.setSize({ width: entry!.contentRect.width, height: HEIGHT_PX });
    });
    sized.observe(box.current!);
    const redraw = () => made.redraw(false);
    const themed = new MutationObserver(redraw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', redraw);
    return () => {
      sized.disconnect();
      themed.disconnect();
      system.removeEventListener('change', redraw);
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(columnsOf(bars, stepS)), [bars, stepS]);
  return <div class="chart" ref={box} role="img" aria-label={label} />;
}

/** Colours are properties of the box, so that the canvas follows the theme. */
function optionsFor(box: HTMLElement, stepS: number): uPlot.Options {
  const colour = (name: 'color' | 'stroke' | 'fill' | 'borderTopColor') => () =>
    getComputedStyle(box)[name];
  const axis: uPlot.Axis = {
    stroke: colour('color'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: colour('borderTopColor'), width: 1 },
    ticks: { show: false },
  };
  const value = (_plot: uPlot, spread: number | null) =>
    spread === null || spread === undefined ? '–' : formatSpread(spread);
  const edge = { width: 0, points: { show: false }, value };
  return {
    width: box.clientWidth,
    height: HEIGHT_PX,
    cursor: { drag: { x: false, y: false } },
    // For a single bar the library gives a range of years.
    scales: {
      x: {
        range: ({ data: [times] }, min, max) =>
          times.length === 1 ? [min - 30 * stepS, min + stepS] : [min, max],
      },
    },
    axes: [
      { ...axis, values: timesOf },
      { ...axis, size: 72, values: (_plot, ticks) => ticks.map(formatSpread) },
    ],
    series: [
      { label: 'Time', value: '{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}' },
      { ...edge, label: 'High' },
      { ...edge, label: 'Low' },
      {
        ...{ label: 'Spread %', stroke: colour('stroke'), width: 1.5, value },
        points: { size: 4, width: 0, fill: colour('stroke') },
      },
    ],
    bands: [{ series: [1, 2], fill: colour('fill') }],
  };
}

/** Times at the ticks, `incrS` apart: days, minutes or seconds, in this machine's time zone. */
function timesOf(
  _plot: uPlot,
  ticks: number[],
  _axis: number,
  _space: number,
  incrS: number,
): string[] {
  const clock = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  const day = { day: 'numeric', month: 'short' } as const;
  const form =
    incrS >= 86_400 ? day : incrS >= 60 ? clock : { ...clock, second: '2-digit' as const };
  return ticks.map((tick) => new Date(tick * 1_000).toLocaleString('en-GB', form));
}

/** The columns that uPlot draws; an empty step where pills paused. */
function columnsOf(bars: readonly Bar[], stepS: number): uPlot.AlignedData {
  const [times, highs, lows, closes]: [number[], ...(number | null)[][]] = [[], [], [], []];
  for (const { start, high, low, close } of bars) {
    const atS = Date.parse(start) / 1_000;
    const lastS = times.at(-1);
    if (lastS !== undefined && atS - lastS > GAP_STEPS * stepS) {
      times.push(lastS + stepS);
      for (const column of [highs!, lows!, closes!]) column.push(null);
    }
    times.push(atS);
    highs!.push(high);
    lows!.push(low);
    closes!.push(close);
  }
  return [times, highs!, lows!, closes!];
}
