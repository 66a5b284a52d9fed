import { useRef } from 'preact/hooks';
import { type Row, spreadsOf } from '../market/market.ts';
import { DECIMALS, formatAge, formatChange, formatConfidence, formatSpread } from './format.ts';
import { Spark } from './spark.tsx';

export interface RowLineProps {
  readonly row: Row;
  /** Place in the whole table, its header is 1. */
  readonly index: number;
  /** By the platform's clock; undefined: it has not told its time. */
  readonly nowMs: number | undefined;
  /** A change lights up: not where everything changes all the time. */
  readonly isCalm: boolean;
}

/** One symbol. */
export function RowLine({ row, index, nowMs, isCalm }: RowLineProps) {
  const { symbol, spread, change, confidence, state, atMs, quiet, count } = row;
  const light = useLight(count, isCalm);
  const way = wayOf(change ?? 0);
  const ageMs = nowMs === undefined ? undefined : Math.max(0, nowMs - atMs);
  return (
    <tr aria-rowindex={index} data-symbol={symbol}>
      <th scope="row" class="symbol">
        {symbol}
      </th>
      <td class="spread">
        {/* Another key makes another element, whose light begins anew. */}
        <span
          key={light}
          class={light > 0 ? 'figure fresh' : 'figure'}
          // A line that changes places would light up again.
          onAnimationEnd={({ currentTarget }) => currentTarget.classList.remove('fresh')}
        >
          {formatSpread(spread)}
        </span>
      </td>
      <td class={`change ${way}`}>
        <span class="arrow" aria-hidden="true">
          {ARROWS[way]}
        </span>
        {formatChange(change)}
      </td>
      <td class="trend">
        <Spark spreads={spreadsOf(row)} />
      </td>
      <td class="confidence">{formatConfidence(confidence)}</td>
      <td class="state">
        <span class={`badge ${kindOf(state)}`}>{state.replaceAll('_', ' ')}</span>
        {quiet !== undefined && (
          <span class="quiet" title={quiet}>
            {quiet}
          </span>
        )}
      </td>
      <td class={ageMs !== undefined && ageMs > OLD_MS ? 'age old' : 'age'}>
        {ageMs === undefined ? '…' : formatAge(ageMs)}
      </td>
    </tr>
  );
}

/** @returns another number each time a pill has come since the last drawing that is to light up; 0: none */
function useLight(count: number, isCalm: boolean): number {
  const drawn = useRef({ count, light: 0 });
  const isNew = drawn.current.count !== count;
  if (isNew) drawn.current = { count, light: drawn.current.light + (isCalm ? 1 : 0) };
  return drawn.current.light;
}

/** What is this old nobody acts on. */
const OLD_MS = 60_000;
const ARROWS = { wider: '▲', tighter: '▼', same: '' } as const;

/** As far as the figure shows it. */
function wayOf(change: number): keyof typeof ARROWS {
  const shown = Number(change.toFixed(DECIMALS));
  return shown > 0 ? 'wider' : shown < 0 ? 'tighter' : 'same';
}

/** The shape before a state's name; labels are the sender's own, most are none of these. */
function kindOf(state: string): string {
  const label = state.toLowerCase();
  if (label === 'open') return 'open';
  if (label.includes('lunch') || label.includes('break')) return 'pause';
  if (label.includes('close') || label.includes('holiday') || label.includes('halt')) return 'shut';
  return 'other';
}
