import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { ActionButton } from '../parts/action-button.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { AttemptTable } from './attempt-table.tsx';
import { type Endpoint, stateText } from './bodies.ts';
import { DeliveryTable } from './delivery-table.tsx';
import { EndpointDialog, type EndpointDialogKind } from './endpoint-dialog.tsx';
import { HealthSection } from './health-section.tsx';
import { Terms } from './terms.tsx';

/** Messages younger than this are recovered by the button. */
const RECOVER_MS = 86_400_000;

/** One endpoint: its state, what waits for it, and every attempt. */
export default function EndpointPage() {
  const { params } = useRoute();
  const path = `/api/webhooks/${params.id}`;
  const endpoint = useLoad<Endpoint>(path);
  const [open, setOpen] = useState<EndpointDialogKind>();
  const [sent, setSent] = useState<string>();
  return (
    <PageOf title="Endpoint">
      <WhenLoaded of={endpoint} rows={4}>
        {(one) => (
          <>
            <EndpointFacts of={one} />
            <EndpointActions
              of={one}
              {...{ path, sent, setSent, setOpen }}
              reload={endpoint.reload}
            />
          </>
        )}
      </WhenLoaded>
      <Terms />
      <HealthSection path={path} />
      <DeliveryTable path={path} />
      <AttemptTable path={path} sent={sent} />
      {open !== undefined && (
        <EndpointDialog
          path={path}
          which={open}
          onOpen={setOpen}
          onClose={() => setOpen(undefined)}
        />
      )}
    </PageOf>
  );
}

/** What can be done with an endpoint, and what came of it. */
function EndpointActions(props: {
  readonly of: Endpoint;
  readonly path: string;
  readonly sent: string | undefined;
  readonly setSent: (message: string) => void;
  readonly setOpen: (dialog: EndpointDialogKind) => void;
  readonly reload: () => void;
}) {
  const { of: one, path, sent, setSent, setOpen, reload } = props;
  const { client } = useSession();
  const [recovered, setRecovered] = useState<number>();
  const setStatus = async (status: 'enabled' | 'disabled') => {
    await client.send('PATCH', path, { status });
    reload();
  };
  const test = async () => {
    type Posted = { readonly message_id: string };
    setSent((await client.send<Posted>('POST', `${path}/test`)).message_id);
  };
  const recover = async () => {
    const since = new Date(Date.now() - RECOVER_MS).toISOString();
    type Recovered = { readonly recovered: number };
    setRecovered((await client.send<Recovered>('POST', `${path}/recover`, { since })).recovered);
  };
  return (
    <>
      <div class="buttons">
        <ActionButton onClick={test}>Send test</ActionButton>
        {one.state === 'enabled' ? (
          <ActionButton onClick={() => setStatus('disabled')}>Disable</ActionButton>
        ) : (
          <ActionButton onClick={() => setStatus('enabled')}>Enable</ActionButton>
        )}
        <ActionButton onClick={recover}>Recover failed messages</ActionButton>
        <button type="button" onClick={() => setOpen('replay')}>
          Replay
        </button>
        <button type="button" onClick={() => setOpen('rotate')}>
          Rotate secret
        </button>
        <button type="button" class="danger" onClick={() => setOpen('delete')}>
          Delete
        </button>
      </div>
      {sent !== undefined && (
        <p class="notice" role="status">
          Test message <code>{sent}</code> was sent: its attempt is listed below within two seconds.
        </p>
      )}
      {recovered !== undefined && (
        <p class="notice" role="status">
          {recovered === 0
            ? 'No message of the last day was given up.'
            : `${recovered.toLocaleString('en')} messages of the last day are due again.`}
        </p>
      )}
    </>
  );
}

function EndpointFacts({ of: one }: { readonly of: Endpoint }) {
  return (
    <>
      <p class="wide">
        <code>{one.url}</code>
      </p>
      <dl class="facts">
        <div>
          <dt>State</dt>
          <dd>{stateText(one)}</dd>
        </div>
        <div>
          <dt>Events</dt>
          <dd>{one.event_types.join(', ')}</dd>
        </div>
        {one.failing_since !== null && (
          <div>
            <dt>Failing since</dt>
            <dd>
              <Time of={one.failing_since} />
            </dd>
          </div>
        )}
        {one.resting_until !== null && (
          <div>
            <dt>Rests until</dt>
            <dd>
              <Time of={one.resting_until} />
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}
