import { ActionButton } from '../parts/action-button.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import type { Delivery } from './bodies.ts';

/** Messages that wait for an attempt, or were given up. @param props.path of the endpoint */
export function DeliveryTable({ path }: { readonly path: string }) {
  const { client } = useSession();
  const deliveries = useLoad<{ readonly data: readonly Delivery[] }>(`${path}/deliveries?limit=20`);
  return (
    <section class="part">
      <h2>Deliveries that wait or were given up</h2>
      <WhenLoaded of={deliveries} rows={2}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="hint">None: every message was delivered.</p>
          ) : (
            <table class="stacked">
              <thead>
                <tr>
                  <th>Created</th>
                  <th>Message</th>
                  <th>State</th>
                  <th class="number">Attempts</th>
                  <th>Last answer</th>
                  <th>
                    <span class="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.map((one) => (
                  <tr key={one.message_id}>
                    <td data-title="Created">
                      <Time of={one.created_at} />
                    </td>
                    <td data-title="Message">
                      {one.event_type}
                      <code class="id">{one.message_id}</code>
                    </td>
                    <td data-title="State">
                      {one.status}
                      {one.next_at !== null && (
                        <>
                          , next attempt <Time of={one.next_at} />
                        </>
                      )}
                    </td>
                    <td data-title="Attempts" class="number">
                      {one.attempts}
                    </td>
                    <td data-title="Last answer">{one.last_status ?? one.last_reason ?? 'None'}</td>
                    <td class="actions">
                      <ActionButton
                        label={`Resend ${one.message_id}`}
                        onClick={async () => {
                          await client.send('POST', `${path}/deliveries/${one.message_id}/resend`);
                          deliveries.reload();
                        }}
                      >
                        Resend
                      </ActionButton>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </WhenLoaded>
    </section>
  );
}
