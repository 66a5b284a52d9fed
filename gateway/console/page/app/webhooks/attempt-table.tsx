import { useEffect, useState } from 'preact/hooks';
import { ActionButton } from '../parts/action-button.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import type { Attempt } from './bodies.ts';

const OUTCOMES = ['', 'delivered', 'retry', 'failed', 'expired'] as const;
/** Attempts are in the log after a second; the list is read again until the test is there. */
const READ_EVERY_MS = 1_000;

/** Attempts, newest first. @param props.sent a test message whose attempt is awaited */
export function AttemptTable(props: { readonly path: string; readonly sent: string | undefined }) {
  const { path, sent } = props;
  const [outcome, setOutcome] = useState('');
  const filter = outcome === '' ? '' : `&outcome=${outcome}`;
  const attempts = useLoad<{ readonly data: readonly Attempt[] }>(
    `${path}/attempts?limit=50${filter}`,
  );
  const isListed =
    sent === undefined || attempts.data?.data.some(({ message_id: id }) => id === sent) === true;
  useEffect(() => {
    if (isListed) return;
    const timer = setInterval(attempts.reload, READ_EVERY_MS);
    return () => clearInterval(timer);
  }, [isListed, attempts.reload]);
  return (
    <section class="part">
      <div class="head">
        <h2>Attempts</h2>
        <select
          aria-label="Outcome"
          value={outcome}
          onChange={(event) => setOutcome(event.currentTarget.value)}
        >
          {OUTCOMES.map((one) => (
            <option key={one} value={one}>
              {one || 'All outcomes'}
            </option>
          ))}
        </select>
      </div>
      <WhenLoaded of={attempts} rows={6}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="hint">No attempts in the last 30 days.</p>
          ) : (
            <table class="stacked">
              <thead>
                <tr>
                  <th>Time</th>
                  <th>Message</th>
                  <th class="number">Attempt</th>
                  <th>Outcome</th>
                  <th class="number">Took</th>
                  <th>Answer</th>
                  <th>
                    <span class="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.map((one) => (
                  <AttemptRow
                    key={`${one.message_id} ${one.attempt} ${one.at}`}
                    of={one}
                    path={path}
                    onResent={attempts.reload}
                  />
                ))}
              </tbody>
            </table>
          )
        }
      </WhenLoaded>
    </section>
  );
}

function AttemptRow(props: {
  readonly of: Attempt;
  readonly path: string;
  readonly onResent: () => void;
}) {
  const { of: one, path, onResent } = props;
  const { client } = useSession();
  return (
    <tr>
      <td data-title="Time">
        <Time of={one.at} />
      </td>
      <td data-title="Message">
        {one.event_type}
        <code class="id">{one.message_id}</code>
      </td>
      <td data-title="Attempt" class="number">
        {one.attempt}
      </td>
      <td data-title="Outcome">
        {one.outcome} {one.status ?? one.reason}
      </td>
      <td data-title="Took" class="number">
        {Math.round(one.latency_ms)} ms
      </td>
      <td data-title="Answer" class="wide">
        <code>{one.answer || one.detail}</code>
      </td>
      <td class="actions">
        <ActionButton
          label={`Resend ${one.message_id}, attempt ${one.attempt}`}
          onClick={async () => {
            await client.send('POST', `${path}/deliveries/${one.message_id}/resend`);
            onResent();
          }}
        >
          Resend
        </ActionButton>
      </td>
    </tr>
  );
}
