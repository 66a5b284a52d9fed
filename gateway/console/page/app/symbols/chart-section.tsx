import { useMemo } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { Chart } from '../../view/chart.tsx';
import { formatSpread } from '../../view/format.ts';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Bars, type Interval, LIVE_MS, readOf, STEPS } from './bodies.ts';
import type { Live } from './use-live-edge.ts';

/** Beside a socket, the bars are read again only for late pills. */
const BESIDE_LIVE_MS = 60_000;
/** Newest bars of the table below the chart. */
const ROWS_MAX = 50;

/** The spread by bars of an interval, which is in the address. */
export function ChartSection(props: {
  readonly symbol: string;
  readonly interval: Interval;
  readonly live: Live;
}) {
  const { symbol, interval, live } = props;
  const { query, route } = useLocation();
  const path = readOf('/api/analytics/bars', symbol, { interval, limit: '500' });
  const bars = useLoad<Bars>(path, live.state === 'live' ? BESIDE_LIVE_MS : LIVE_MS);
  return (
    <section class="part" aria-label="Chart">
      <div class="head">
        <h2>Spread, bars of {interval}</h2>
        <fieldset class="ranges">
          <legend class="unseen">Interval of the bars</legend>
          {Object.keys(STEPS).map((one) => (
            <button
              type="button"
              key={one}
              aria-pressed={one === interval}
              onClick={() =>
                route(`/app/symbol?${new URLSearchParams({ ...query, interval: one })}`, true)
              }
            >
              {one}
            </button>
          ))}
        </fieldset>
      </div>
      <WhenLoaded of={bars} rows={8}>
        {({ data }) => <Drawn bars={data} {...{ symbol, interval, live }} />}
      </WhenLoaded>
    </section>
  );
}

function Drawn(props: {
  readonly bars: Bars['data'];
  readonly interval: Interval;
  readonly symbol: string;
  readonly live: Live;
}) {
  const { bars, interval, symbol, live } = props;
  const oldestFirst = useMemo(() => live.edge.extend(bars.toReversed()), [bars, live]);
  if (oldestFirst.length === 0) return <p class="hint">No pills in the range of these bars.</p>;
  return (
    <>
      <Chart
        key={interval}
        bars={oldestFirst}
        stepS={STEPS[interval]}
        label={`Spread of ${symbol}, ${bars.length} bars of ${interval}`}
      />
      <details>
        <summary>The newest bars as a table</summary>
        <table>
          <thead>
            <tr>
              <th>Start</th>
              {['Low', 'Median', 'High', 'Close', 'Pills'].map((name) => (
                <th key={name} class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {bars.slice(0, ROWS_MAX).map((bar) => (
              <tr key={bar.start}>
                <td>
                  <Time of={bar.start} />
                </td>
                {[bar.low, bar.p50, bar.high, bar.close].map((value, place) => (
                  <td key={place} class="number">
                    {formatSpread(value)}
                  </td>
                ))}
                <td class="number">{bar.count}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}
