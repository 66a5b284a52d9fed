import { BarChart } from '../parts/bar-chart.tsx';
import { Facts } from '../parts/facts.tsx';
import { PageOf } from '../parts/page.tsx';
import { localTime, Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import type { Usage as UsageBody } from './bodies.ts';
import { runsOutAt } from './runs-out.ts';

const EVERY_MS = 30_000;

/** Calls against the quota, by hour, day, key and endpoint. */
export default function Usage() {
  const usage = useLoad<UsageBody>('/api/usage?days=30', EVERY_MS);
  const again = (
    <button type="button" onClick={usage.reload}>
      Read again
    </button>
  );
  return (
    <PageOf title="Usage" action={again}>
      <WhenLoaded of={usage} rows={8}>
        {(body) => <Counts usage={body} />}
      </WhenLoaded>
    </PageOf>
  );
}

function Counts({ usage }: { readonly usage: UsageBody }) {
  const keys = usage.by_key.map(
    ({ key_id: id, name, calls }) => [id, name === null ? id : `${name} (${id})`, calls] as const,
  );
  const endpoints = usage.by_endpoint.map(({ endpoint, calls }) => {
    return [endpoint, endpoint, calls] as const;
  });
  const hours = usage.by_hour.map(({ hour, calls }) => [localTime(hour), calls] as const);
  const days = usage.by_day.map(({ day, calls }) => [day, calls] as const);
  return (
    <>
      <Today today={usage.today} />
      <div class="columns">
        <Over title="Last 48 hours" column="Hour" counts={hours} />
        <Over title="Last 30 days" column="Day (UTC)" counts={days} />
      </div>
      <div class="columns">
        <section class="part">
          <h2>By key</h2>
          <Calls title="Key" rows={keys} />
        </section>
        <section class="part">
          <h2>By endpoint</h2>
          <Calls title="Endpoint" rows={endpoints} />
        </section>
      </div>
    </>
  );
}

function Today({ today }: Pick<UsageBody, 'today'>) {
  const { used, limit, projected, resets_at: resets } = today;
  const end = runsOutAt(today);
  const count = (value: number) => value.toLocaleString('en');
  return (
    <>
      <Facts
        of={[
          ['Calls today', `${count(used)} of ${limit === null ? 'unlimited' : count(limit)}`],
          ['Left', limit === null ? 'No limit' : count(Math.max(0, limit - used))],
          ['By the end of the day, at this pace', projected === null ? '–' : count(projected)],
          ['Runs out', end === undefined ? 'Not today' : <Time of={end} />],
          ['Begins again', <Time of={resets} />],
        ]}
      />
      {limit !== null && limit > 0 && (
        <meter
          aria-label="Calls of today"
          min={0}
          max={1}
          high={0.8}
          optimum={0}
          value={used / limit}
        />
      )}
      {end !== undefined && limit !== null && used < limit && (
        <p class="notice bad">
          At this pace the quota runs out at <Time of={end} />. Then reads are refused with 429
          until the day ends. <a href="/app/plans">See the plans</a>.
        </p>
      )}
      <p class="hint">
        The day begins at 00:00 UTC. Counts by key and endpoint follow within seconds.
      </p>
    </>
  );
}

/** Counts over time, oldest first. */
function Over(props: {
  readonly title: string;
  readonly column: string;
  readonly counts: readonly (readonly [at: string, calls: number])[];
}) {
  const { title, column, counts } = props;
  const busy = counts.filter(([, calls]) => calls > 0).toReversed();
  return (
    <section class="part">
      <h2>{title}</h2>
      {busy.length === 0 ? (
        <p class="hint">No calls.</p>
      ) : (
        <BarChart
          label={`Calls, ${title.toLowerCase()}`}
          unit="calls"
          bars={counts.map(([at, figure]) => ({ at, figure }))}
        >
          <Calls title={column} rows={busy.map(([at, calls]) => [at, at, calls] as const)} />
        </BarChart>
      )}
    </section>
  );
}

function Calls(props: {
  readonly title: string;
  readonly rows: readonly (readonly [id: string, name: string, calls: number])[];
}) {
  const { title, rows } = props;
  if (rows.length === 0) return <p class="hint">No calls yet.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th>{title}</th>
          <th class="number">Calls</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([id, name, calls]) => (
          <tr key={id}>
            <td class="wide">{name}</td>
            <td class="number">{calls.toLocaleString('en')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
