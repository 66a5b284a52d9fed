import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { EntryPage } from './entry-page.tsx';

export default function Forgotten() {
  const { client } = useSession();
  const [isSent, setSent] = useState(false);
  const request = async ({ email }: Readonly<Record<string, string>>) => {
    await client.send('POST', '/api/password/reset', { email });
    setSent(true);
  };
  return (
    <EntryPage title="Forgotten password">
      {isSent ? (
        <p role="status">If there is an account with this address, a mail is on its way.</p>
      ) : (
        <Form action="Send a link" onSubmit={request}>
          <Field name="email" label="E-mail" type="email" autocomplete="username" />
        </Form>
      )}
      <p>
        <a href="/app/sign-in">Sign in</a>
      </p>
    </EntryPage>
  );
}
