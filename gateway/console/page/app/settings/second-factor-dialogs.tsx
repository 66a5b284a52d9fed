import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
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
  return (
    <Dialog title="Add to your authenticator" onClose={onClose}>
      <p>
        <a href={uri} target="_self">
          Open the authenticator on this device
        </a>
        , or type the secret into it.
      </p>
      <Copyable label="Secret" text={secret} />
      <Form
        action="Confirm"
        onSubmit={async ({ code }) =>
          onConfirmed(await client.send('POST', '/api/second-factor/confirm', { code }))
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
