import { useState } from 'preact/hooks';
import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { PageOf } from '../parts/page.tsx';
import { useLoad } from '../parts/use-load.ts';
import { useNew } from '../parts/use-new.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Endpoint, type Endpoints as List, stateText } from './bodies.ts';
import { CreateEndpointDialog } from './create-endpoint-dialog.tsx';
import { Terms } from './terms.tsx';

/** The webhook endpoints of the account. */
export default function Endpoints() {
  const endpoints = useLoad<List>('/api/webhooks?limit=100');
  const [isCreating, setCreating] = useNew();
  const [secret, setSecret] = useState<string>();
  const hasRoom = endpoints.data !== undefined && endpoints.data.limit !== 0;
  const create = hasRoom && (
    <button type="button" class="main" onClick={() => setCreating(true)}>
      Create endpoint
    </button>
  );
  return (
    <PageOf title="Webhooks" action={create}>
      <WhenLoaded of={endpoints} rows={5}>
        {(list) =>
          list.data.length > 0 ? (
            <EndpointTable list={list} />
          ) : (
            <div class="empty">
              <p>No endpoints yet. An endpoint is an address of yours to which pills are posted.</p>
              {list.limit === 0 && (
                <p>
                  <a href="/app/plans">Choose Pro or Institutional</a> first: webhooks belong to
                  these plans.
                </p>
              )}
            </div>
          )
        }
      </WhenLoaded>
      <Terms />
      {isCreating && hasRoom && (
        <CreateEndpointDialog
          onClose={() => setCreating(false)}
          onMade={(made) => {
            setCreating(false);
            setSecret(made);
            endpoints.reload();
          }}
        />
      )}
      {secret !== undefined && (
        <Dialog title="Signing secret" onClose={() => setSecret(undefined)}>
          <p class="notice">Copy the secret now: it is never shown again.</p>
          <Copyable label="Secret" text={secret} />
          <p class="hint">
            Messages are signed with it. The endpoint is pending until it answers the challenge.
          </p>
          <button type="button" class="main" onClick={() => setSecret(undefined)}>
            I have copied it
          </button>
        </Dialog>
      )}
    </PageOf>
  );
}

function EndpointTable({ list }: { readonly list: List }) {
  return (
    <>
      <p>
        <strong>{list.data.length}</strong> of {list.limit ?? 'unlimited'} endpoints.
        {list.next !== null && ' The oldest hundred are listed.'}
      </p>
      <table class="stacked">
        <thead>
          <tr>
            <th>Address</th>
            <th>Events</th>
            <th>Filters</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {list.data.map((endpoint) => (
            <tr key={endpoint.id}>
              <td data-title="Address" class="wide">
                <a href={`/app/webhooks/${endpoint.id}`}>{endpoint.url}</a>
                <code class="id">{endpoint.id}</code>
              </td>
              <td data-title="Events">{endpoint.event_types.join(', ')}</td>
              <td data-title="Filters">{filterText(endpoint)}</td>
              <td data-title="State">{stateText(endpoint)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function filterText({ symbols, min_confidence: confidence, states }: Endpoint): string {
  const parts = [
    symbols.length === 0 ? 'All symbols' : symbols.slice(0, 5).join(', '),
    ...(symbols.length > 5 ? [`${symbols.length - 5} more`] : []),
    ...(confidence === null ? [] : [`confidence from ${confidence}`]),
    ...states,
  ];
  return parts.join(', ');
}
