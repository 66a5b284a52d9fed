import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import type { Session } from '../session/client.ts';
import type { ProofProps } from '../session/session-context.tsx';

/** Asks for a password or a code while the page behind stays as it is. */
export function ProofDialog({ client, proof, onSettled }: ProofProps) {
  const { user, second_factor: factor } = client.session()!;
  const isSignIn = proof === 'sign-in';
  const prove = async ({ password, code }: Readonly<Record<string, string>>) => {
    const session = isSignIn
      ? await client.send<Session>('POST', '/api/session', {
          email: user.email,
          password,
          ...(code ? { code } : {}),
        })
      : await client.send<Session>('POST', '/api/session/second-factor', { code });
    client.useSession(session);
    onSettled(true);
  };
  return (
    <Dialog
      title={isSignIn ? 'Sign in again' : 'Confirm it is you'}
      onClose={() => onSettled(false)}
    >
      <p>
        {isSignIn
          ? `The session of ${user.email} has ended. What you typed is still here.`
          : 'This change needs a code of your authenticator, valid for 10 minutes.'}
      </p>
      <Form action={isSignIn ? 'Sign in' : 'Confirm'} onSubmit={prove}>
        {isSignIn && (
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        )}
        {(!isSignIn || factor.enabled) && (
          <Field name="code" label="Code or recovery code" autocomplete="one-time-code" />
        )}
      </Form>
    </Dialog>
  );
}
