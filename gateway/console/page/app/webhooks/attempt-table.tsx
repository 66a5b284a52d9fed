import { useEffect, useMemo, useState } from 'preact/hooks';
import { ActionButton } from '../parts/action-button.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { AttemptFilterFields, attemptQuery, useAttemptFilter } from './attempt-filter.tsx';
import type { Attempt } from './bodies.ts';
import { MessageDialog } from './message-dialog.tsx';

/** Attempts are in the log after a second; the list is read again until the test is there. */
const READ_EVERY_MS = 1_000;

/** Attempts, newest first. @param props.sent a test message whose attempt is awaited */
export function AttemptTable(props: { readonly path: string; readonly sent: string | undefined }) {
  const { path, sent } = props;
  const filter = useAttemptFilter();
  const { outcome, code, since } = filter;
  // The time of the choice: each drawing would else ask for another range.
  const asked = useMemo(() => attemptQuery(filter, Date.now()), [outcome, code, since]);
  const attempts = useLoad<{ readonly data: readonly Attempt[] }>(`${path}/attempts?${asked}`);
  const [shown, setShown] = useState<Attempt>();
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
        <AttemptFilterFields filter={filter} />
      </div>
      <WhenLoaded of={attempts} rows={6}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="hint">No attempts with this filter in the last 30 days.</p>
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
                    onShow={() => setShown(one)}
                  />
                ))}
              </tbody>
            </table>
          )
        }
      </WhenLoaded>
      {shown !== undefined && (
        <MessageDialog path={path} of={shown} onClose={() => setShown(undefined)} />
      )}
    </section>
  );
}

function AttemptRow(props: {
  readonly of: Attempt;
  readonly path: string;
  readonly onResent: () => void;
  readonly onShow: () => void;
}) {
  const { of: one, path, onResent, onShow } = props;
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
        <code class="cut">{one.answer || one.detail}</code>
      </td>
      <td class="actions">
        <button
          type="button"
          aria-label={`Show ${one.message_id}, attempt ${one.attempt}`}
          onClick={onShow}
        >
          Show
        </button>{' '}
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
