import { ActionButton } from '../parts/action-button.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';

interface SignIn {
  readonly id: string;
  readonly address: string;
  readonly user_agent: string;
  readonly created_at: string;
  readonly last_seen_at: string;
  readonly current: boolean;
}

/** Where the user is signed in. */
export function SignInsSection() {
  const { client } = useSession();
  const signIns = useLoad<{ readonly data: readonly SignIn[] }>('/api/sessions');
  const end = async (path: string) => {
    await client.send('DELETE', path);
    signIns.reload();
  };
  return (
    <section class="part">
      <h2>Sign-ins</h2>
      <WhenLoaded of={signIns} rows={3}>
        {({ data }) => (
          <>
            <table class="stacked">
              <thead>
                <tr>
                  <th>Address</th>
                  <th>Browser</th>
                  <th>Since</th>
                  <th>Last seen</th>
                  <th>
                    <span class="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.map((one) => (
                  <tr key={one.id}>
                    <td data-title="Address">{one.address}</td>
                    <td data-title="Browser" class="wide">
                      {one.user_agent}
                    </td>
                    <td data-title="Since">
                      <Time of={one.created_at} />
                    </td>
                    <td data-title="Last seen">
                      <Time of={one.last_seen_at} />
                    </td>
                    <td class="actions">
                      {one.current ? (
                        'This one'
                      ) : (
                        <ActionButton
                          label={`End the sign-in from ${one.address}`}
                          onClick={() => end(`/api/sessions/${one.id}`)}
                        >
                          End
                        </ActionButton>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            {data.length > 1 && (
              <ActionButton onClick={() => end('/api/sessions')}>End all others</ActionButton>
            )}
          </>
        )}
      </WhenLoaded>
    </section>
  );
}
