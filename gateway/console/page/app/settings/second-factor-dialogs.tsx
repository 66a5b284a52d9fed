import { useMemo } from 'preact/hooks';
import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { qrPath } from '../parts/qr-path.ts';
import { useSession } from '../session/session-context.tsx';

/** The secret for the authenticator, and the first code that confirms it. */
export function SetUpDialog(props: {
  readonly secret: string;
  readonly uri: string;
  readonly onClose: () => void;
  readonly onConfirmed: (codes: { recovery_codes: readonly string[] }) => void;
}) {
  const { secret, uri, onClose, onConfirmed } = props;
  const { client } = useSession();
  const code = useMemo(() => qrPath(uri), [uri]);
  return (
    <Dialog title="Add to your authenticator" onClose={onClose}>
      <p>
        Scan the code with the authenticator,{' '}
        <a href={uri} target="_self">
          open the authenticator on this device
        </a>
        , or type the secret into it.
      </p>
      <svg class="qr" viewBox={`0 0 ${code.size} ${code.size}`} role="img" aria-label="QR code">
        <path d={code.path} />
      </svg>
      <Copyable label="Secret" text={secret} />
      <Form
        action="Confirm"
        onSubmit={async ({ code: first }) =>
          onConfirmed(await client.send('POST', '/api/second-factor/confirm', { code: first }))
        }
      >
        <Field
          name="code"
          label="Code"
          hint="Six digits. All other sign-ins end."
          autocomplete="one-time-code"
        />
      </Form>
    </Dialog>
  );
}

/** Shown once: each code replaces the authenticator a single time. */
export function RecoveryCodesDialog(props: {
  readonly codes: readonly string[];
  readonly onClose: () => void;
}) {
  const { codes, onClose } = props;
  return (
    <Dialog title="Recovery codes" onClose={onClose}>
      <p class="notice">
        Keep them where the authenticator is not: each signs you in once, and they are never shown
        again.
      </p>
      <Copyable label="Codes" text={codes.join('\n')} />
      <button type="button" class="main" onClick={onClose}>
        I have kept them
      </button>
    </Dialog>
  );
}
