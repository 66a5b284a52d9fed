import { Bars } from '../parts/bars.tsx';
import { PageOf } from '../parts/page.tsx';
import { localTime } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import type { Usage as UsageBody } from './bodies.ts';

/** Calls against the quota, by day, key and endpoint. */
export default function Usage() {
  const usage = useLoad<UsageBody>('/api/usage?days=30');
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
  const { used, limit, projected } = usage.today;
  const share = limit === null || limit === 0 ? 0 : used / limit;
  // Newest first.
  const days = usage.by_day.map(({ day, calls }) => [day, day, calls] as const).reverse();
  const keys = usage.by_key.map(
    ({ key_id: id, name, calls }) => [id, name === null ? id : `${name} (${id})`, calls] as const,
  );
  const endpoints = usage.by_endpoint.map(({ endpoint, calls }) => {
    return [endpoint, endpoint, calls] as const;
  });
  return (
    <>
      <p>
        <strong>{used.toLocaleString('en')}</strong> of{' '}
        {limit === null ? 'unlimited' : limit.toLocaleString('en')} calls today. The day begins at
        00:00 UTC.
      </p>
      {limit !== null && <meter aria-label="Calls of today" min={0} max={1} value={share} />}
      {projected !== null && limit !== null && projected > limit && (
        <p class="notice bad">
          At this pace the day needs {projected.toLocaleString('en')} calls: the quota runs out.
        </p>
      )}
      <Hours hours={usage.by_hour} />
      <Calls title="Key" rows={keys} />
      <Calls title="Endpoint" rows={endpoints} />
      <Calls title="Day (UTC)" rows={days} />
    </>
  );
}

/** The last 48 hours as bars; the table has the same in figures. */
function Hours({ hours }: { readonly hours: UsageBody['by_hour'] }) {
  const busy = hours.filter(({ calls }) => calls > 0).reverse();
  if (busy.length === 0) return <p class="hint">No calls in the last 48 hours.</p>;
  return (
    <section class="part">
      <h2>Last 48 hours</h2>
      <Bars counts={hours.map(({ calls }) => calls)} height={64} />
      <details>
        <summary>As a table</summary>
        <Calls
          title="Hour"
          rows={busy.map(({ hour, calls }) => [hour, localTime(hour), calls] as const)}
        />
      </details>
    </section>
  );
}

function Calls(props: {
  readonly title: string;
  readonly rows: readonly (readonly [id: string, name: string, calls: number])[];
}) {
  const { title, rows } = props;
  if (rows.length === 0) return <p class="hint">{title}: no calls yet.</p>;
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
            <td>{name}</td>
            <td class="number">{calls.toLocaleString('en')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
