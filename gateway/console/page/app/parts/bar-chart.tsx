import type { ComponentChildren } from 'preact';
import { Bars } from './bars.tsx';

const HEIGHT_PX = 72;

/** Figures over time as bars, with their ends and the largest one, and the same as a table. */
export function BarChart(props: {
  /** For screen readers, without the figures. */
  readonly label: string;
  readonly unit: string;
  /** Oldest first. */
  readonly bars: readonly { readonly at: string; readonly figure: number }[];
  /** The table, unless it is beside the chart. */
  readonly children?: ComponentChildren;
}) {
  const { label, unit, bars, children } = props;
  const figures = bars.map(({ figure }) => figure);
  const most = Math.max(...figures, 0);
  return (
    <div class="bar-chart">
      <p class="scale">
        Highest: {most.toLocaleString('en')} {unit}
      </p>
      <div role="img" aria-label={`${label}, at most ${most.toLocaleString('en')} ${unit}`}>
        <Bars counts={figures} height={HEIGHT_PX} />
      </div>
      <p class="ends" aria-hidden="true">
        <span>{bars[0]?.at}</span>
        <span>{bars.at(-1)?.at}</span>
      </p>
      {children !== undefined && (
        <details>
          <summary>As a table</summary>
          {children}
        </details>
      )}
    </div>
  );
}
