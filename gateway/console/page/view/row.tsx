import { useRef } from 'preact/hooks';
import { isShut } from '../market/closed-venues.ts';
import type { Row, Venue } from '../market/symbol-rows.ts';
import {
  DECIMALS,
  formatAge,
  formatChange,
  formatConfidence,
  formatSpread,
  formatTime,
} from './format.ts';
import { Spark } from './spark.tsx';
import type { SymbolLinks } from './symbol-links.ts';
import { useKept } from './use-kept.ts';

/** One symbol. */
export function RowLine(props: {
  readonly row: Row;
  /** Undefined if it is not known. */
  readonly venue: Venue | undefined;
  /** Index in the whole table; the header is 1. */
  readonly index: number;
  /** Time by the platform's clock; undefined while unknown. */
  readonly nowMs: number | undefined;
  /** Whether to highlight changes, which would distract if everything changed all the time. */
  readonly isCalm: boolean;
  /** Whether the row is in the window. */
  readonly isSeen: boolean;
  readonly links: SymbolLinks;
}) {
  const { row, venue, index, isCalm, isSeen } = props;
  const kept = { mayWait: !isCalm && !isSeen, inputs: [row, venue, index, isCalm, isSeen] };
  return useKept(kept, () => <Cells {...props} />);
}

function Cells(props: Parameters<typeof RowLine>[0]) {
  const { row, venue, index, nowMs, isCalm, links } = props;
  const { symbol, name, spread, change, confidence, state, atMs, quiet, count } = row;
  const light = useHighlight(count, isCalm);
  const way = wayOf(change ?? 0);
  const ageMs = nowMs === undefined ? undefined : Math.max(0, nowMs - atMs);
  return (
    <tr
      aria-rowindex={index}
      data-symbol={symbol}
      onClick={(event) => {
        // A click on the link itself has its own effect, such as another tab.
        if (!(event.target instanceof HTMLAnchorElement)) links.open(symbol);
      }}
    >
      <th scope="row" class="symbol">
        <a href={links.addressOf(symbol)}>{symbol}</a>
        {name !== undefined && <span class="name">{name}</span>}
      </th>
      <td class="spread">
        {/* A new key creates a new element, which restarts the animation. */}
        <span
          key={light}
          class={light > 0 ? 'figure fresh' : 'figure'}
          // Without this, a row that moves would be highlighted again.
          onAnimationEnd={({ currentTarget }) => currentTarget.classList.remove('fresh')}
        >
          {formatSpread(spread)}
        </span>
      </td>
      <td class={`change ${way}`} onPointerMove={(event) => describeChange(event, row)}>
        <span class="arrow" aria-hidden="true">
          {ARROWS[way]}
        </span>
        {formatChange(change)}
      </td>
      <td class="trend">
        <Spark spreads={row.spreads} {...{ count, isCalm }} />
      </td>
      <td class="confidence">{formatConfidence(confidence)}</td>
      <StateCell {...{ state, quiet, venue }} />
      <td class={ageMs !== undefined && ageMs > OLD_MS ? 'age old' : 'age'}>
        {ageMs === undefined ? '…' : formatAge(ageMs)}
      </td>
    </tr>
  );
}

/** Only now: four times a second, the format of a time cost more than the rest of the row. */
function describeChange({ currentTarget }: { currentTarget: HTMLElement }, { sinceMs }: Row): void {
  currentTarget.title = sinceMs === undefined ? '' : `since ${formatTime(sinceMs)}`;
}

function StateCell({
  state,
  quiet,
  venue,
}: Pick<Row, 'state' | 'quiet'> & { venue: Venue | undefined }) {
  // The list of closed venues says so once. A label that differs from the calendar is shown.
  const isSaidAbove = isShut(venue) && kindOf(state) === 'shut';
  return (
    <td class="state">
      <span class={`badge ${kindOf(state)}`}>
        {venue !== undefined && <span class="venue">{venue.name} </span>}
        <span class={isSaidAbove ? 'unseen' : undefined}>{state.replaceAll('_', ' ')}</span>
      </span>
      {quiet !== undefined && (
        <span class="quiet" title={quiet}>
          {quiet}
        </span>
      )}
    </td>
  );
}

/** @returns how many pills were highlighted so far */
function useHighlight(count: number, isCalm: boolean): number {
  const drawn = useRef({ count, light: 0 });
  const isNew = drawn.current.count !== count;
  if (isNew) drawn.current = { count, light: drawn.current.light + (isCalm ? 1 : 0) };
  return drawn.current.light;
}

/** Older pills are shown as too old to act on. */
const OLD_MS = 60_000;
const ARROWS = { wider: '▲', tighter: '▼', same: '' } as const;

/** The direction of a change, at the precision of the shown figure. */
function wayOf(change: number): keyof typeof ARROWS {
  const shown = Number(change.toFixed(DECIMALS));
  return shown > 0 ? 'wider' : shown < 0 ? 'tighter' : 'same';
}

/** The icon before a state's name. Labels are free text of the sender, so most are `other`. */
function kindOf(state: string): string {
  const label = state.toLowerCase();
  if (label === 'open') return 'open';
  if (label.includes('lunch') || label.includes('break')) return 'pause';
  if (label.includes('close') || label.includes('holiday') || label.includes('halt')) return 'shut';
  return 'other';
}
