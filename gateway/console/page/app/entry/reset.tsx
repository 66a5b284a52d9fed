import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { EntryPage } from './entry-page.tsx';
import { mailToken } from './mail-token.ts';

/** The link of the reset mail opens this page. */
export default function Reset() {
  const { client } = useSession();
  const [isDone, setDone] = useState(false);
  const token = mailToken();
  const reset = async ({ password }: Readonly<Record<string, string>>) => {
    await client.send('POST', '/api/password/reset/confirm', { token, password });
    // Every session of the user has ended, this browser's too.
    client.useSession(undefined);
    setDone(true);
  };
  return (
    <EntryPage title={isDone ? 'Password changed' : 'New password'}>
      {isDone ? (
        <p>
          All sessions ended. <a href="/app/sign-in">Sign in</a>
        </p>
      ) : token === undefined ? (
        <p>
          Open the link in our mail once more, or <a href="/app/forgotten">request another</a>.
        </p>
      ) : (
        <Form action="Set password" onSubmit={reset}>
          <Field name="password" label="New password" type="password" autocomplete="new-password" />
        </Form>
      )}
    </EntryPage>
  );
}
