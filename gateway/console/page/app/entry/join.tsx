import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { EntryPage } from './entry-page.tsx';
import { mailToken } from './mail-token.ts';

/** The link of an invitation opens this page, for a new user and for one who is signed in. */
export default function Join() {
  const { client, state } = useSession();
  const [isDone, setDone] = useState(false);
  const token = mailToken();
  const join = async ({ password }: Readonly<Record<string, string>>) => {
    if (password === undefined) await client.send('POST', '/api/invitations/join', { token });
    else await client.send('POST', '/api/invitations/accept', { token, password });
    // Every session of the user has ended, this browser's too.
    client.useSession(undefined);
    setDone(true);
  };
  if (isDone) {
    return (
      <EntryPage title="You are a member">
        <p>
          <a href="/app/sign-in">Sign in</a>
        </p>
      </EntryPage>
    );
  }
  if (token === undefined) {
    return (
      <EntryPage title="Join an account">
        <p>Open the link in our mail once more: this page needs the token that is in it.</p>
      </EntryPage>
    );
  }
  return (
    <EntryPage title="Join an account">
      {state.kind === 'signed-in' ? (
        <>
          <p>
            You join as {state.session.user.email}, leave your present account, and are signed out.
          </p>
          <Form action="Join" onSubmit={join} />
        </>
      ) : (
        <>
          <p>
            Choose a password. If you have an account with this address,{' '}
            <a href="/app/sign-in?to=/app/join">sign in</a> instead.
          </p>
          <Form action="Join" onSubmit={join}>
            <Field name="password" label="Password" type="password" autocomplete="new-password" />
          </Form>
        </>
      )}
    </EntryPage>
  );
}
