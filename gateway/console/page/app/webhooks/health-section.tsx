import { BarChart } from '../parts/bar-chart.tsx';
import { localTime, Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';

interface Hour {
  readonly hour: string;
  readonly delivered: number;
  readonly retried: number;
  readonly given_up: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

const EVERY_MS = 30_000;

/** Attempts of the last 24 hours by hour, newest first. */
export function HealthSection({ path }: { readonly path: string }) {
  const health = useLoad<{ readonly data: readonly Hour[] }>(`${path}/health`, EVERY_MS);
  const count = (value: number) => value.toLocaleString('en');
  return (
    <section class="part">
      <h2>Last 24 hours</h2>
      <WhenLoaded of={health} rows={3}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="hint">Nothing was posted.</p>
          ) : (
            <BarChart
              label="Attempts by hour"
              unit="attempts"
              bars={data.map(({ hour, delivered, retried, given_up: up }) => ({
                at: localTime(hour),
                figure: delivered + retried + up,
              }))}
            >
              <table class="stacked">
                <thead>
                  <tr>
                    <th>Hour</th>
                    <th class="number">Delivered</th>
                    <th class="number">Repeated</th>
                    <th class="number">Given up</th>
                    <th class="number">Median</th>
                    <th class="number">99th percentile</th>
                  </tr>
                </thead>
                <tbody>
                  {[...data].reverse().map((one) => (
                    <tr key={one.hour}>
                      <td data-title="Hour">
                        <Time of={one.hour} />
                      </td>
                      <td data-title="Delivered" class="number">
                        {count(one.delivered)}
                      </td>
                      <td data-title="Repeated" class="number">
                        {count(one.retried)}
                      </td>
                      <td data-title="Given up" class="number">
                        {count(one.given_up)}
                      </td>
                      <td data-title="Median" class="number">
                        {one.p50_ms.toFixed(1)} ms
                      </td>
                      <td data-title="99th percentile" class="number">
                        {one.p99_ms.toFixed(1)} ms
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </BarChart>
          )
        }
      </WhenLoaded>
    </section>
  );
}
