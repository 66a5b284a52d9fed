import { BarChart } from '../parts/bar-chart.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';

interface Latency {
  readonly pills: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly promise_share: number;
}

interface Body {
  readonly data: readonly {
    readonly day: string;
    readonly ok_share: number | null;
    readonly stream: Latency | null;
    readonly webhook: Latency | null;
  }[];
  readonly incidents: readonly {
    readonly component: string;
    readonly began_at: string;
    readonly ended_at: string | null;
  }[];
}

/** Latency and availability by day, then the incidents. */
export function DaysSection({ titles }: { readonly titles: Readonly<Record<string, string>> }) {
  const days = useLoad<Body>('/api/status/days');
  return (
    <section class="part">
      <h2>Last 30 days</h2>
      <WhenLoaded of={days} rows={8}>
        {({ data, incidents }) => (
          <>
            <Days days={data} />
            <h2>Incidents</h2>
            {incidents.length === 0 && <p class="hint">None in these days.</p>}
            <ul>
              {incidents.map(({ component, began_at: began, ended_at: ended }) => (
                <li key={`${component} ${began}`}>
                  {titles[component] ?? component}: <Time of={began} />
                  {ended === null ? ', goes on' : `, for ${lengthOf(began, ended)}`}
                </li>
              ))}
            </ul>
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

/** From the first day with a measurement. */
function Days({ days }: { readonly days: Body['data'] }) {
  const first = days.findLastIndex(
    ({ ok_share: ok, stream, webhook }) => ok !== null || stream !== null || webhook !== null,
  );
  if (first < 0) return <p class="hint">Nothing was measured yet.</p>;
  const measured = days.slice(0, first + 1);
  return (
    <>
      <BarChart
        label="Stream, 99th percentile by day"
        unit="ms, 99th percentile of the stream"
        bars={days.toReversed().map(({ day, stream }) => ({
          at: day,
          figure: Math.round((stream?.p99_ms ?? 0) * 10) / 10,
        }))}
      />
      <DayTable days={measured} />
      {measured.length < days.length && (
        <p class="hint">Nothing was measured before {measured.at(-1)!.day}.</p>
      )}
    </>
  );
}

function DayTable({ days }: { readonly days: Body['data'] }) {
  return (
    <table class="stacked">
      <thead>
        <tr>
          <th>Day (UTC)</th>
          <th class="number">Available</th>
          <th class="number">Stream, median</th>
          <th class="number">99th percentile</th>
          <th class="number">Within 100 ms</th>
          <th class="number">Webhooks, 99th percentile</th>
        </tr>
      </thead>
      <tbody>
        {days.map(({ day, ok_share: ok, stream, webhook }) => (
          <tr key={day}>
            <td data-title="Day (UTC)">{day}</td>
            <td class="number" data-title="Available">
              {share(ok)}
            </td>
            <td class="number" data-title="Stream, median">
              {ms(stream?.p50_ms)}
            </td>
            <td class="number" data-title="99th percentile">
              {ms(stream?.p99_ms)}
            </td>
            <td class="number" data-title="Within 100 ms">
              {share(stream?.promise_share)}
            </td>
            <td class="number" data-title="Webhooks, 99th percentile">
              {ms(webhook?.p99_ms)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const ms = (value: number | undefined) => (value === undefined ? '–' : `${value.toFixed(1)} ms`);

/** Rounded down, so that 100 % means all. */
function share(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return `${(Math.floor(value * 100_000) / 1_000).toFixed(3)} %`;
}

function lengthOf(began: string, ended: string): string {
  const seconds = Math.round((Date.parse(ended) - Date.parse(began)) / 1_000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
