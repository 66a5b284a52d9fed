import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Field } from '../parts/form.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { RecoveryCodesDialog, SetUpDialog } from './second-factor-dialogs.tsx';

interface Factor {
  readonly enabled: boolean;
  readonly recovery_codes_left: number;
}

type Open =
  | { readonly kind: 'begin' | 'remove' | 'replace' }
  | { readonly kind: 'confirm'; readonly secret: string; readonly uri: string }
  | { readonly kind: 'codes'; readonly codes: readonly string[] };

/** A code of an authenticator besides the password. */
export function SecondFactorSection() {
  const { client } = useSession();
  const factor = useLoad<Factor>('/api/second-factor');
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const changed = () => {
    factor.reload();
    // The session says from now on whether a code is needed.
    void client.readSession();
  };
  return (
    <section class="part">
      <h2>Second factor</h2>
      <WhenLoaded of={factor} rows={2}>
        {({ enabled, recovery_codes_left: left }) =>
          enabled ? (
            <>
              <p>
                In force. {left} recovery {left === 1 ? 'code is' : 'codes are'} left.
              </p>
              <p class="buttons">
                <button type="button" onClick={() => setOpen({ kind: 'replace' })}>
                  Replace recovery codes
                </button>
                <button type="button" class="danger" onClick={() => setOpen({ kind: 'remove' })}>
                  Remove second factor
                </button>
              </p>
            </>
          ) : (
            <>
              <p>Not set up. With a second factor, a stolen password is not enough to sign in.</p>
              <button type="button" onClick={() => setOpen({ kind: 'begin' })}>
                Set up second factor
              </button>
            </>
          )
        }
      </WhenLoaded>
      {open !== undefined && (
        <SecondFactorDialog open={open} onOpen={setOpen} onClose={close} onChanged={changed} />
      )}
    </section>
  );
}

function SecondFactorDialog(props: {
  readonly open: Open;
  readonly onOpen: (next: Open) => void;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}) {
  const { open, onOpen, onClose, onChanged } = props;
  const { client } = useSession();
  const showCodes = ({ recovery_codes: codes }: { recovery_codes: readonly string[] }) => {
    onOpen({ kind: 'codes', codes });
    onChanged();
  };
  return (
    <>
      {open.kind === 'begin' && (
        <ConfirmDialog
          title="Set up second factor"
          action="Continue"
          onClose={onClose}
          onConfirm={async ({ password }) => {
            type Begun = { readonly secret: string; readonly uri: string };
            const begun = await client.send<Begun>('POST', '/api/second-factor', { password });
            onOpen({ kind: 'confirm', ...begun });
          }}
        >
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        </ConfirmDialog>
      )}
      {open.kind === 'confirm' && (
        <SetUpDialog {...open} onClose={onClose} onConfirmed={showCodes} />
      )}
      {open.kind === 'codes' && <RecoveryCodesDialog codes={open.codes} onClose={onClose} />}
      {open.kind === 'replace' && (
        <ConfirmDialog
          title="Replace recovery codes"
          action="Replace"
          onClose={onClose}
          onConfirm={async () =>
            showCodes(await client.send('POST', '/api/second-factor/recovery-codes'))
          }
        >
          <p>The earlier codes are void at once.</p>
        </ConfirmDialog>
      )}
      {open.kind === 'remove' && (
        <ConfirmDialog
          title="Remove second factor"
          action="Remove"
          onClose={onClose}
          onConfirm={async ({ password }) => {
            await client.send('DELETE', '/api/second-factor', { password });
            onClose();
            onChanged();
          }}
        >
          <p>From then on, the password alone is enough. Recovery codes are void.</p>
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        </ConfirmDialog>
      )}
    </>
  );
}
