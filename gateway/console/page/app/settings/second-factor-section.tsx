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
  const showCodes = ({ recovery_codes: codes }: { recovery_codes: readonly string[] }) => {
    setOpen({ kind: 'codes', codes });
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
      {open?.kind === 'begin' && (
        <ConfirmDialog
          title="Set up second factor"
          action="Continue"
          onClose={close}
          onConfirm={async ({ password }) => {
            type Begun = { readonly secret: string; readonly uri: string };
            const begun = await client.send<Begun>('POST', '/api/second-factor', { password });
            setOpen({ kind: 'confirm', ...begun });
          }}
        >
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        </ConfirmDialog>
      )}
      {open?.kind === 'confirm' && (
        <SetUpDialog {...open} onClose={close} onConfirmed={showCodes} />
      )}
      {open?.kind === 'codes' && <RecoveryCodesDialog codes={open.codes} onClose={close} />}
      {open?.kind === 'replace' && (
        <ConfirmDialog
          title="Replace recovery codes"
          action="Replace"
          onClose={close}
          onConfirm={async () =>
            showCodes(await client.send('POST', '/api/second-factor/recovery-codes'))
          }
        >
          <p>The earlier codes are void at once.</p>
        </ConfirmDialog>
      )}
      {open?.kind === 'remove' && (
        <ConfirmDialog
          title="Remove second factor"
          action="Remove"
          onClose={close}
          onConfirm={async ({ password }) => {
            await client.send('DELETE', '/api/second-factor', { password });
            close();
            factor.reload();
            await client.readSession();
          }}
        >
          <p>From then on, the password alone is enough. Recovery codes are void.</p>
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        </ConfirmDialog>
      )}
    </section>
  );
}
