import type { Account } from '../account/bodies.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { ChaosSection } from './chaos-section.tsx';
import { DedicatedSection } from './dedicated-section.tsx';
import { TicketSection } from './ticket-section.tsx';

interface Socket {
  readonly session: string;
  readonly since: string;
  readonly address: string;
  readonly key: string;
  readonly encoding: string;
  readonly queue_ms: number;
  readonly queue_bytes: number;
}

interface Sockets {
  readonly count: number;
  readonly data: readonly Socket[];
}

/** While the page is visible. */
const READ_EVERY_MS = 2_000;

/** The open sockets of the account with their queues, and its dedicated sockets. */
export default function Streams() {
  const sockets = useLoad<Sockets>('/api/stream/sessions', READ_EVERY_MS);
  const account = useLoad<Account>('/api/account');
  return (
    <PageOf title="Streams">
      <WhenLoaded of={sockets} rows={5}>
        {(open) =>
          open.count === 0 ? (
            <NoSockets stream={account.data?.services.stream} />
          ) : (
            <SocketTable open={open} limit={account.data?.limits.stream_connections} />
          )
        }
      </WhenLoaded>
      {account.data?.tier === 'institutional' && <DedicatedSection />}
      <TicketSection />
      <ChaosSection />
    </PageOf>
  );
}

function NoSockets({ stream }: { readonly stream: string | undefined }) {
  return (
    <div class="empty">
      <p>No socket is open.</p>
      {stream !== undefined && (
        <p>
          Connect to <code>{stream}</code> with a key that has the scope <code>stream</code>: see
          the <a href="/app/docs?view=stream">stream reference</a>.
        </p>
      )}
    </div>
  );
}

function SocketTable(props: { readonly open: Sockets; readonly limit: number | undefined }) {
  const { open, limit } = props;
  const { client } = useSession();
  return (
    <>
      <p>
        <strong>{open.count.toLocaleString('en')}</strong>
        {limit === undefined ? '' : ` of ${limit.toLocaleString('en')}`} sockets.
        {open.count > open.data.length && ` The newest ${open.data.length} are listed.`}
      </p>
      <table class="stacked">
        <thead>
          <tr>
            <th>Since</th>
            <th>Address</th>
            <th>Key</th>
            <th>Encoding</th>
            <th class="number">Behind by</th>
            <th class="number">Queue</th>
            <th>
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {open.data.map((one) => (
            <tr key={one.session}>
              <td data-title="Since">
                <Time of={one.since} />
              </td>
              <td data-title="Address">{one.address}</td>
              <td data-title="Key">
                <code>{one.key}</code>
              </td>
              <td data-title="Encoding">{one.encoding}</td>
              <td data-title="Behind by" class="number">
                {one.queue_ms.toLocaleString('en')} ms
              </td>
              <td data-title="Queue" class="number">
                {one.queue_bytes.toLocaleString('en')} B
              </td>
              <td class="actions">
                <ActionButton
                  label={`Close the socket of ${one.address}`}
                  onClick={() => client.send('DELETE', `/api/stream/sessions/${one.session}`)}
                >
                  Close
                </ActionButton>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
