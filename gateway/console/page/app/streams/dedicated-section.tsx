import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Field } from '../parts/form.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { type DedicatedSocket, DedicatedTable } from './dedicated-table.tsx';

const PATH = '/api/manager/streams';
const EVERY_MS = 5_000;

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'rotate' | 'remove'; readonly socket: DedicatedSocket };

/** Dedicated sockets of an Institutional account: each is a process of its own. */
export function DedicatedSection() {
  type Sockets = { readonly data: readonly DedicatedSocket[]; readonly limit: number };
  const sockets = useLoad<Sockets>(PATH, EVERY_MS);
  const [open, setOpen] = useState<Open>();
  return (
    <section class="part">
      <div class="head">
        <h2>Dedicated sockets</h2>
        <button type="button" onClick={() => setOpen({ kind: 'create' })}>
          Create dedicated socket
        </button>
      </div>
      <WhenLoaded of={sockets} rows={2}>
        {({ data, limit }) =>
          data.length === 0 ? (
            <p class="hint">None yet, of {limit}. Each is a process that serves no one else.</p>
          ) : (
            <DedicatedTable
              sockets={data}
              onRotate={(socket) => setOpen({ kind: 'rotate', socket })}
              onRemove={(socket) => setOpen({ kind: 'remove', socket })}
            />
          )
        }
      </WhenLoaded>
      {open !== undefined && (
        <DedicatedDialog
          open={open}
          onClose={() => setOpen(undefined)}
          onChanged={() => {
            setOpen(undefined);
            sockets.reload();
          }}
        />
      )}
    </section>
  );
}

function DedicatedDialog(props: {
  readonly open: Open;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}) {
  const { open, onClose, onChanged } = props;
  const { client } = useSession();
  const change = async (method: string, path: string, body?: object) => {
    await client.send(method, path, body);
    onChanged();
  };
  if (open.kind === 'create') {
    return (
      <ConfirmDialog
        title="Create dedicated socket"
        action="Create"
        onClose={onClose}
        onConfirm={({ label }) => change('POST', PATH, { label })}
      >
        <Field
          name="label"
          label="Label"
          hint="For example the desk that connects to the socket."
        />
      </ConfirmDialog>
    );
  }
  const { name, label } = open.socket;
  return open.kind === 'rotate' ? (
    <ConfirmDialog
      title={`Rotate ${label}`}
      action="Rotate"
      onClose={onClose}
      onConfirm={() => change('POST', `${PATH}/${name}/rotate`, {})}
    >
      <p>
        A successor with another address starts within seconds. The present socket stays open for
        the overlap, then its connections close.
      </p>
    </ConfirmDialog>
  ) : (
    <ConfirmDialog
      title={`Remove ${label}`}
      action="Remove"
      onClose={onClose}
      onConfirm={() => change('DELETE', `${PATH}/${name}`)}
    >
      <p>Its connections close within about a second, and its address is never used again.</p>
    </ConfirmDialog>
  );
}
