import { formatSpread } from '../../view/format.ts';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Cadence, type Outliers, readOf, type States, type Summary } from './bodies.ts';

const GAPS_SHOWN = 10;
const OUTLIERS_SHOWN = 10;

/** Figures of the ranges that the API answers by default. */
export function DaySections({ symbol }: { readonly symbol: string }) {
  const summary = useLoad<Summary>(readOf('/api/analytics/summary', symbol));
  const states = useLoad<States>(readOf('/api/analytics/states', symbol));
  const cadence = useLoad<Cadence>(readOf('/api/analytics/cadence', symbol));
  const outliers = useLoad<Outliers>(readOf('/api/analytics/outliers', symbol));
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
      <section class="part">
        <h2>Cadence of the last 24 hours</h2>
        <WhenLoaded of={cadence} rows={4}>
          {(body) => <Gaps of={body} />}
        </WhenLoaded>
      </section>
      <section class="part">
        <h2>Outliers of the last hour</h2>
        <WhenLoaded of={outliers} rows={4}>
          {(body) => <OutlierTable of={body} />}
        </WhenLoaded>
      </section>
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

function Gaps({
  of: { interval_ms: interval, gaps, gaps_count: count },
}: {
  readonly of: Cadence;
}) {
  const seconds = (ms: number | null) => (ms === null ? '–' : `${(ms / 1_000).toFixed(2)} s`);
  return (
    <>
      <p>
        A pill every {seconds(interval.p50)} (median), {seconds(interval.p95)} at the 95th
        percentile. {gapsText(count)}
      </p>
      {count > 0 && (
        <table>
          <thead>
            <tr>
              <th>From</th>
              <th class="number">Length</th>
              <th>Because</th>
            </tr>
          </thead>
          <tbody>
            {gaps.slice(0, GAPS_SHOWN).map(({ from, seconds: length, because }) => (
              <tr key={from}>
                <td>
                  <Time of={from} />
                </td>
                <td class="number">{formatDuration(length)}</td>
                <td>{because.replaceAll('_', ' ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function OutlierTable({ of: { data, count, threshold } }: { readonly of: Outliers }) {
  if (count === 0) {
    return <p>No pill is more than {threshold} robust deviations from the 1,000 before it.</p>;
  }
  return (
    <table>
      <thead>
        <tr>
          <th>Time</th>
          <th class="number">Spread</th>
          <th class="number">Median before</th>
          <th class="number">Robust z</th>
        </tr>
      </thead>
      <tbody>
        {data.slice(0, OUTLIERS_SHOWN).map((one) => (
          <tr key={one.cursor}>
            <td>
              <Time of={one.timestamp} />
            </td>
            <td class="number">{formatSpread(one.gross_spread_percent)}</td>
            <td class="number">{formatSpread(one.median)}</td>
            <td class="number">{one.z === null ? 'infinite' : one.z.toFixed(1)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function gapsText(count: number): string {
  if (count === 0) return 'No gaps.';
  return count === 1 ? 'One gap:' : `${count} gaps, the newest first:`;
}

/** `45 s`, `12 min`, `3.5 h`. */
function formatDuration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  return seconds < 3_600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}
