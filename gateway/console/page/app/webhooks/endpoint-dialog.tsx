import { useLocation } from 'preact-iso';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { useSession } from '../session/session-context.tsx';
import { ReplayDialog } from './replay-dialog.tsx';

/** What a dialog asks for; an object is the new secret, to be copied. */
export type EndpointDialogKind = 'rotate' | 'delete' | 'replay' | { readonly secret: string };

interface Rotated {
  readonly secret: string;
}

/** Dialogs of an endpoint's page. @param path of the endpoint in the API */
export function EndpointDialog(props: {
  readonly path: string;
  readonly which: EndpointDialogKind;
  readonly onOpen: (next: EndpointDialogKind) => void;
  readonly onClose: () => void;
}) {
  const { path, which, onOpen, onClose } = props;
  const { client } = useSession();
  const { route } = useLocation();
  return (
    <>
      {which === 'replay' && <ReplayDialog path={path} onClose={onClose} />}
      {which === 'rotate' && (
        <ConfirmDialog
          title="Rotate secret"
          action="Rotate"
          onClose={onClose}
          onConfirm={async () => {
            onOpen(await client.send<Rotated>('POST', `${path}/rotate-secret`, {}));
          }}
        >
          <p>The present secret signs messages besides the new one for a day.</p>
        </ConfirmDialog>
      )}
      {typeof which === 'object' && (
        <Dialog title="New secret" onClose={onClose}>
          <p class="notice">Copy the secret now: it is never shown again.</p>
          <Copyable label="Secret" text={which.secret} />
          <button type="button" class="main" onClick={onClose}>
            I have copied it
          </button>
        </Dialog>
      )}
      {which === 'delete' && (
        <ConfirmDialog
          title="Delete endpoint"
          action="Delete endpoint"
          onClose={onClose}
          onConfirm={async () => {
            await client.send('DELETE', path);
            route('/app/webhooks');
          }}
        >
          <p>All messages that wait for it are deleted too. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
