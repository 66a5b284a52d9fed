import { formatSpread } from '../../view/format.ts';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { readOf, type States, type Summary } from './bodies.ts';
import { CadenceSection } from './cadence-section.tsx';
import { formatDuration } from './duration.ts';
import { OutlierSection } from './outlier-section.tsx';

/** Figures of the ranges that the API answers by default. */
export function DaySections({ symbol }: { readonly symbol: string }) {
  const summary = useLoad<Summary>(readOf('/api/analytics/summary', symbol));
  const states = useLoad<States>(readOf('/api/analytics/states', symbol));
  return (
    <>
      <section class="part">
        <h2>Percentiles of the last 24 hours</h2>
        <WhenLoaded of={summary} rows={2}>
          {(body) => <Percentiles of={body} />}
        </WhenLoaded>
      </section>
      <section class="part">
        <h2>Market states of the last 24 hours</h2>
        <WhenLoaded of={states} rows={2}>
          {(body) => <StateBand of={body} />}
        </WhenLoaded>
      </section>
      <CadenceSection symbol={symbol} />
      <OutlierSection symbol={symbol} />
    </>
  );
}

function Percentiles({ of: { count, spread, confidence } }: { readonly of: Summary }) {
  const figures = [
    ['Lowest', spread.min],
    ['5 %', spread.p05],
    ['Median', spread.p50],
    ['95 %', spread.p95],
    ['Highest', spread.max],
    ['Mean', spread.mean],
  ] as const;
  return (
    <dl class="facts">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === null ? '–' : formatSpread(value)}</dd>
        </div>
      ))}
      <div>
        <dt>Mean confidence</dt>
        <dd>{confidence.mean === null ? '–' : confidence.mean.toFixed(1)}</dd>
      </div>
      <div>
        <dt>Pills</dt>
        <dd>{count.toLocaleString('en')}</dd>
      </div>
    </dl>
  );
}

function StateBand({ of: { data } }: { readonly of: States }) {
  return (
    <>
      <div class="band" aria-hidden="true">
        {data.map(({ market_state: state, share }) => (
          <span key={state} data-state={state} style={{ flexGrow: share }} />
        ))}
      </div>
      <dl class="facts">
        {data.map(({ market_state: state, share, seconds }) => (
          <div key={state}>
            <dt>{state.replaceAll('_', ' ')}</dt>
            <dd>
              {(share * 100).toFixed(1)} %, {formatDuration(seconds)}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
