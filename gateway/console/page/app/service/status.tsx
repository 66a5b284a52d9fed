import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import type { PlatformStatus } from './bodies.ts';
import { DaysSection } from './days-section.tsx';

const EVERY_MS = 10_000;

const WORDS = {
  ok: 'All parts work.',
  starting: 'The platform is starting.',
  degraded: 'A part of the platform does not work.',
};
const TITLES: Readonly<Record<string, string>> = {
  log: 'Log of pills',
  latest: 'Latest pills',
  accounts: 'Accounts',
};

/** State of the platform, as the API sees it now. */
export default function Status() {
  const status = useLoad<PlatformStatus>('/api/status', EVERY_MS);
  return (
    <PageOf title="Status">
      <WhenLoaded of={status} rows={6}>
        {(body) => <Present of={body} />}
      </WhenLoaded>
      <DaysSection titles={TITLES} />
    </PageOf>
  );
}

function Present({ of: body }: { readonly of: PlatformStatus }) {
  const { latency } = body;
  const ms = (value: number | null) => (value === null ? '–' : `${value.toFixed(1)} ms`);
  return (
    <>
      <p class={body.status === 'ok' ? 'notice good' : 'notice bad'} role="status">
        {WORDS[body.status]}
      </p>
      {body.notices.map(({ id, message, severity, published_at: at }) => (
        <p key={id} class="notice">
          <strong>{severity}</strong> {message} (<Time of={at} />)
        </p>
      ))}
      <dl class="facts">
        <div>
          <dt>Received to readable, median</dt>
          <dd>{ms(latency.p50_ms)}</dd>
        </div>
        <div>
          <dt>99th percentile</dt>
          <dd>{ms(latency.p99_ms)}</dd>
        </div>
        <div>
          <dt>Pills in the last {latency.window_s} s</dt>
          <dd>{latency.count.toLocaleString('en')}</dd>
        </div>
        <div>
          <dt>Last pill</dt>
          <dd>
            <Time of={body.last_received_at} otherwise="none yet" />
          </dd>
        </div>
      </dl>
      <table>
        <thead>
          <tr>
            <th>Part</th>
            <th>State</th>
            <th class="number">Records behind</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(body.components).map(([name, { state, lag_records: lag }]) => (
            <tr key={name}>
              <td>{TITLES[name] ?? name}</td>
              <td>{state}</td>
              <td class="number">{lag ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hint">
        Read at <Time of={body.time} />, and every 10 s. Latency is measured in the API, from the
        moment a pill was received until it can be read.
      </p>
    </>
  );
}
