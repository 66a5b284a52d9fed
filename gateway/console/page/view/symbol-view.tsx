import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Verdict } from '../../../../sdk/exports.ts';
import type { Feed } from '../feed/market-feed.ts';
import type { Bar } from '../feed/market-reads.ts';
import { isShut } from '../market/closed-venues.ts';
import type { Row } from '../market/symbol-rows.ts';
import { Chart } from './chart.tsx';
import { type Column, DataTable, When } from './data-table.tsx';
import { formatAge, formatChange, formatConfidence, formatSpread, formatTime } from './format.ts';
import { useRead } from './use-read.ts';
import { VerdictPanel } from './verdict.tsx';
import { WayBack } from './way-back.tsx';

const RANGES = [
  { label: '10 minutes', interval: '1s', stepS: 1, againMs: 10_000 },
  { label: '6 hours', interval: '1m', stepS: 60, againMs: 30_000 },
  { label: '7 days', interval: '1h', stepS: 3_600, againMs: 60_000 },
] as const;
/** A verdict is read again when it ends, within these bounds. */
const VERDICT_MS = { min: 10_000, max: 60_000 };

/** One symbol: its last pill, its chart and its verdict. */
export function SymbolView(props: {
  readonly feed: Feed;
  readonly symbol: string;
  readonly nowMs: number | undefined;
  readonly isCurrent: boolean;
}) {
  const { feed, symbol, nowMs, isCurrent } = props;
  const { market, reads } = feed;
  const key = reads === undefined ? undefined : symbol;
  const verdict = useRead(key, (signal) => reads!.verdict(symbol, signal), verdictMs);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [symbol]);
  const row = market.rows.get(symbol);
  const venue = market.venues.get(row?.venue ?? '');
  return (
    <article class={isCurrent ? 'symbol-view' : 'symbol-view past'}>
      <WayBack />
      <h2 class="symbol-name" ref={heading} tabIndex={-1}>
        {symbol} {row?.name !== undefined && <span class="name">{row.name}</span>}
      </h2>
      <p class="soft">
        {venue === undefined ? 'No venue is known for this symbol.' : venue.name}
        {venue !== undefined && `, ${venue.state.replaceAll('_', ' ')}`}
        {isShut(venue) &&
          typeof venue?.opens_at === 'string' &&
          ` until ${formatTime(Date.parse(venue.opens_at))}`}
      </p>
      {row === undefined ? (
        <p class="soft">No pill of this symbol has arrived.</p>
      ) : (
        <LastPill row={row} nowMs={nowMs} />
      )}
      <ChartPanel symbol={symbol} reads={reads} />
      <VerdictPanel {...verdict} />
    </article>
  );
}

function ChartPanel({ symbol, reads }: { readonly symbol: string } & Pick<Feed, 'reads'>) {
  const [range, setRange] = useState<(typeof RANGES)[number]>(RANGES[1]);
  const bars = useRead(
    reads && `${symbol} ${range.interval}`,
    (signal) => reads!.bars(symbol, { interval: range.interval }, signal),
    () => range.againMs,
  );
  return (
    <section class="panel" aria-labelledby="chart-title">
      <div class="chart-head">
        <h2 id="chart-title">Spread</h2>
        <fieldset class="ranges">
          <legend class="unseen">Range of the chart</legend>
          {RANGES.map((one) => (
            <button
              type="button"
              key={one.interval}
              aria-pressed={one === range}
              onClick={() => setRange(one)}
            >
              {one.label}
            </button>
          ))}
        </fieldset>
      </div>
      {bars.value !== undefined && bars.value.length > 0 && (
        <>
          <Chart
            bars={bars.value}
            stepS={range.stepS}
            label={`Spread of ${symbol} over ${range.label}, ${bars.value.length} steps`}
          />
          <BarTable bars={bars.value} />
        </>
      )}
      {bars.value?.length === 0 && (
        <p class="soft chart-empty">No pill in the last {range.label}.</p>
      )}
      {bars.value === undefined && bars.fault === undefined && (
        <p class="soft chart-empty">Reading …</p>
      )}
      {bars.fault !== undefined && (
        <p class="bad">The chart could not be read: {bars.fault.message}.</p>
      )}
    </section>
  );
}

/** Newest steps of the table. */
const TABLE_ROWS_MAX = 50;

const BAR_COLUMNS: readonly Column<Bar>[] = [
  { title: 'Start', cell: ({ start }) => <When iso={start} /> },
  ...(['low', 'high', 'close'] as const).map((name) => ({
    title: `${name[0]!.toUpperCase()}${name.slice(1)} %`,
    kind: 'number' as const,
    cell: (bar: Bar) => formatSpread(bar[name]),
  })),
];

/** What the chart draws, in figures; drawn while it is open, and only for other bars. */
function BarTable({ bars }: { readonly bars: readonly Bar[] }) {
  const [isOpen, setOpen] = useState(false);
  const table = useMemo(() => {
    if (!isOpen) return null;
    const rows = bars.slice(-TABLE_ROWS_MAX).toReversed();
    return <DataTable title="Newest steps" columns={BAR_COLUMNS} rows={rows} keyOf={startOf} />;
  }, [bars, isOpen]);
  return (
    <details class="bar-table" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>The newest steps as a table</summary>
      {table}
    </details>
  );
}

const startOf = ({ start }: Bar) => start;

function LastPill({ row, nowMs }: { readonly row: Row; readonly nowMs: number | undefined }) {
  const { spread, change, sinceMs, confidence, state, atMs } = row;
  const since = sinceMs === undefined ? '' : ` since ${formatTime(sinceMs)}`;
  const age = nowMs === undefined ? '…' : formatAge(Math.max(0, nowMs - atMs));
  return (
    <dl class="last-pill">
      <Figure title="Spread">{formatSpread(spread)} %</Figure>
      <Figure title={`Change${since}`}>{formatChange(change)}</Figure>
      <Figure title="Confidence, of 100">{formatConfidence(confidence)}</Figure>
      <Figure title="Market, by the pill">{state.replaceAll('_', ' ')}</Figure>
      <Figure title="Age">{age}</Figure>
    </dl>
  );
}

function Figure({ title, children }: { readonly title: string; readonly children: unknown }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children as string}</dd>
    </div>
  );
}

function verdictMs({ checked_at, valid_until }: Verdict): number {
  const validMs = Date.parse(valid_until) - Date.parse(checked_at);
  return Math.min(VERDICT_MS.max, Math.max(VERDICT_MS.min, validMs));
}
