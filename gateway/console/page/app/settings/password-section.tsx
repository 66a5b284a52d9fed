import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Field } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';

/** A change of the password ends all sign-ins, this one too. */
export function PasswordSection() {
  const { client } = useSession();
  const { route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const change = async ({ current, password }: Readonly<Record<string, string>>) => {
    await client.send('POST', '/api/password', { current, password });
    client.useSession(undefined);
    route('/app/sign-in?changed=password');
  };
  return (
    <section class="part">
      <h2>Password</h2>
      <button type="button" onClick={() => setOpen(true)}>
        Change password
      </button>
      {isOpen && (
        <ConfirmDialog
          title="Change password"
          action="Change"
          onConfirm={change}
          onClose={() => setOpen(false)}
        >
          <p>All sign-ins end, this one too. Keys keep working.</p>
          <Field
            name="current"
            label="Present password"
            type="password"
            autocomplete="current-password"
          />
          <Field
            name="password"
            label="New password"
            type="password"
            hint="A few words are better than one with symbols."
            autocomplete="new-password"
          />
        </ConfirmDialog>
      )}
    </section>
  );
}
