import { useLocation } from 'preact-iso';
import '../../style/connection.css';
import type { Verdict } from '../../../../../sdk/exports.ts';
import { formatConfidence, formatSpread } from '../../view/format.ts';
import { VerdictPanel } from '../../view/verdict.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { type Loaded, useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Interval, LIVE_MS, type Pill, readOf, STEPS } from './bodies.ts';
import { CalendarSection } from './calendar-section.tsx';
import { ChartSection } from './chart-section.tsx';
import { DaySections } from './day-sections.tsx';
import { HistorySection } from './history-section.tsx';
import { type Live, useLiveEdge } from './use-live-edge.ts';

const INTERVALS = Object.keys(STEPS) as Interval[];

/** One symbol: newest pill, verdict, chart, figures of the day and history. */
export default function SymbolPage() {
  const { query } = useLocation();
  const symbol = query.symbol ?? '';
  if (symbol === '') {
    return (
      <PageOf title="Symbol">
        <p>
          Choose one of <a href="/app/symbols">the symbols</a>.
        </p>
      </PageOf>
    );
  }
  return <OneSymbol key={symbol} symbol={symbol} />;
}

function OneSymbol({ symbol }: { readonly symbol: string }) {
  const { query } = useLocation();
  const interval = INTERVALS.find((one) => one === query.interval) ?? '1m';
  const isLive = query.live === '1';
  const live = useLiveEdge(symbol, STEPS[interval], isLive);
  const verdict = useLoad<Verdict>(readOf('/api/market/verify', symbol), LIVE_MS);
  return (
    <PageOf title={symbol} action={<LiveButton isLive={isLive} />}>
      <LiveState live={live} />
      <Newest symbol={symbol} live={live} verdict={verdict} />
      <ChartSection symbol={symbol} interval={interval} live={live} />
      {verdict.data !== undefined && <CalendarSection verdict={verdict.data} />}
      <DaySections symbol={symbol} />
      <HistorySection symbol={symbol} />
      <p class="hint">
        Each read of this page counts as a call. Newest pill, verdict and chart are read again every
        10 s while the page is visible; a live page receives them by a socket, which is one of your
        plan’s connections.
      </p>
    </PageOf>
  );
}

function LiveButton({ isLive }: { readonly isLive: boolean }) {
  const { query, route } = useLocation();
  const { live: _, ...rest } = query;
  const next = new URLSearchParams(isLive ? rest : { ...rest, live: '1' });
  return (
    <button type="button" aria-pressed={isLive} onClick={() => route(`/app/symbol?${next}`, true)}>
      {isLive ? 'Stop live' : 'Go live'}
    </button>
  );
}

function LiveState({ live: { state, reason } }: { readonly live: Live }) {
  if (state === 'off') return null;
  const text = {
    connecting: reason === undefined ? 'Connecting …' : `Connecting again: ${reason}`,
    live: 'Live: each pill as it arrives.',
    ended: `The socket ended: ${reason}`,
  }[state];
  return (
    <p class={state === 'ended' ? 'notice bad' : 'hint'} role="status">
      {text}
    </p>
  );
}

function Newest(props: {
  readonly symbol: string;
  readonly live: Live;
  readonly verdict: Loaded<Verdict>;
}) {
  const { symbol, live, verdict } = props;
  // While the socket brings them, the newest pill is not read again.
  const everyMs = live.state === 'live' ? undefined : LIVE_MS;
  const latest = useLoad<{ readonly data: Pill }>(readOf('/api/pills/latest', symbol), everyMs);
  return (
    <>
      <WhenLoaded of={latest} rows={2}>
        {({ data }) => <Figures of={live.pill ?? data} />}
      </WhenLoaded>
      <WhenLoaded of={verdict} rows={6}>
        {(body) => <VerdictPanel value={body} fault={undefined} atMs={undefined} />}
      </WhenLoaded>
    </>
  );
}

function Figures({ of: pill }: { readonly of: Pill }) {
  return (
    <dl class="facts">
      <div>
        <dt>Spread</dt>
        {/* Another element for another pill, so that it flashes once. */}
        <dd key={pill.cursor} class="flash">
          {formatSpread(pill.gross_spread_percent)} %
        </dd>
      </div>
      <div>
        <dt>Confidence, of 100</dt>
        <dd>{formatConfidence(pill.confidence)}</dd>
      </div>
      <div>
        <dt>Market, by the pill</dt>
        <dd>{pill.market_state.replaceAll('_', ' ')}</dd>
      </div>
      <div>
        <dt>Time of the pill</dt>
        <dd>
          <Time of={pill.timestamp} />
        </dd>
      </div>
    </dl>
  );
}
