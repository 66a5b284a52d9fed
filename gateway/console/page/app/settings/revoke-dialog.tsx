import { Dialog } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import { useLoad } from '../parts/use-load.ts';
import { useSession } from '../session/session-context.tsx';
import type { ApiKey } from './key-body.ts';

/** A socket that was opened just now is in the list a moment later. */
const EVERY_MS = 2_000;

interface Sockets {
  readonly data: readonly { readonly key: string }[];
}

/** States what a revocation closes before it happens. */
export function RevokeDialog(props: {
  readonly record: ApiKey;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}) {
  const { record, onClose, onRevoked } = props;
  const { client } = useSession();
  const sockets = useLoad<Sockets>('/api/stream/sessions', EVERY_MS).data?.data;
  const open = sockets?.filter(({ key }) => key === record.hint).length;
  const revoke = async () => {
    await client.send('DELETE', `/api/keys/${record.id}`);
    onRevoked();
  };
  return (
    <Dialog title={`Revoke ${record.name}`} onClose={onClose}>
      <p>
        Within a second every call with <code>{record.hint}</code> is refused, and its sockets close
        {open === undefined ? '' : ` (${open} open now)`}. This cannot be undone.
      </p>
      <Form action="Revoke key" onSubmit={revoke} />
    </Dialog>
  );
}
