import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { EntryPage } from './entry-page.tsx';
import { mailToken } from './mail-token.ts';

/** The mail's link opens this page. The token alone proves nothing: see ARCHITECTURE.md. */
export default function Verify() {
  const { client, state } = useSession();
  const [isDone, setDone] = useState(false);
  const token = mailToken();
  if (isDone) {
    return (
      <EntryPage title="Address verified">
        <p>
          <a class="main" href="/app">
            Continue to the console
          </a>
        </p>
      </EntryPage>
    );
  }
  if (token === undefined) {
    return (
      <EntryPage title="Verify your address">
        <p>Open the link in our mail once more: this page needs the token that is in it.</p>
      </EntryPage>
    );
  }
  const verify = async ({ password }: Readonly<Record<string, string>>) => {
    await client.send('POST', '/api/users/verify', { token, password });
    setDone(true);
    if (state.kind === 'signed-in') await client.readSession();
  };
  return (
    <EntryPage title="Verify your address">
      <p>With the password of the sign-up, so that no stranger can verify in your name.</p>
      <Form action="Verify" onSubmit={verify}>
        <Field name="password" label="Password" type="password" autocomplete="current-password" />
      </Form>
    </EntryPage>
  );
}
