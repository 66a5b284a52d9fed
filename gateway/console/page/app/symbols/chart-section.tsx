import { useMemo } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { Chart } from '../../view/chart.tsx';
import { formatSpread } from '../../view/format.ts';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Bars, LIVE_MS, readOf, symbolPage } from './bodies.ts';

const STEPS = { '1s': 1, '1m': 60, '15m': 900, '1h': 3_600, '1d': 86_400 } as const;
type Interval = keyof typeof STEPS;
const INTERVALS = Object.keys(STEPS) as Interval[];
/** Newest bars of the table below the chart. */
const ROWS_MAX = 50;

/** The spread by bars of an interval, which is in the address. */
export function ChartSection({ symbol }: { readonly symbol: string }) {
  const { query, route } = useLocation();
  const interval = INTERVALS.find((one) => one === query.interval) ?? '1m';
  const path = readOf('/api/analytics/bars', symbol, { interval, limit: '500' });
  const bars = useLoad<Bars>(path, LIVE_MS);
  return (
    <section class="part" aria-label="Chart">
      <div class="head">
        <h2>Spread, bars of {interval}</h2>
        <fieldset class="ranges">
          <legend class="unseen">Interval of the bars</legend>
          {INTERVALS.map((one) => (
            <button
              type="button"
              key={one}
              aria-pressed={one === interval}
              onClick={() => route(`${symbolPage(symbol)}&interval=${one}`, true)}
            >
              {one}
            </button>
          ))}
        </fieldset>
      </div>
      <WhenLoaded of={bars} rows={8}>
        {({ data }) => <Drawn bars={data} interval={interval} symbol={symbol} />}
      </WhenLoaded>
    </section>
  );
}

function Drawn(props: {
  readonly bars: Bars['data'];
  readonly interval: Interval;
  readonly symbol: string;
}) {
  const { bars, interval, symbol } = props;
  const oldestFirst = useMemo(() => bars.toReversed(), [bars]);
  if (bars.length === 0) return <p class="hint">No pills in the range of these bars.</p>;
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
