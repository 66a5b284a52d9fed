import { useLocation } from 'preact-iso';
import type { Verdict } from '../../../../../sdk/exports.ts';
import { formatConfidence, formatSpread } from '../../view/format.ts';
import { VerdictPanel } from '../../view/verdict.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { LIVE_MS, type Pill, readOf } from './bodies.ts';
import { ChartSection } from './chart-section.tsx';
import { DaySections } from './day-sections.tsx';
import { HistorySection } from './history-section.tsx';

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
  return (
    <PageOf title={symbol}>
      <Newest key={symbol} symbol={symbol} />
      <ChartSection symbol={symbol} />
      <DaySections symbol={symbol} />
      <HistorySection symbol={symbol} />
      <p class="hint">
        Each read of this page counts as a call. Newest pill, verdict and chart are read again every
        10 s while the page is visible.
      </p>
    </PageOf>
  );
}

function Newest({ symbol }: { readonly symbol: string }) {
  const latest = useLoad<{ readonly data: Pill }>(readOf('/api/pills/latest', symbol), LIVE_MS);
  const verdict = useLoad<Verdict>(readOf('/api/market/verify', symbol), LIVE_MS);
  return (
    <>
      <WhenLoaded of={latest} rows={2}>
        {({ data }) => <Figures of={data} />}
      </WhenLoaded>
      <VerdictPanel value={verdict.data} fault={verdict.failure} atMs={undefined} />
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
