import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { EntryPage } from './entry-page.tsx';

export default function SignUp() {
  const { client } = useSession();
  const [email, setEmail] = useState<string>();
  if (email !== undefined) {
    return (
      <EntryPage title="Check your mail">
        <p>
          We sent a link to <strong>{email}</strong>. It is valid for 24 hours.
        </p>
        <button
          type="button"
          onClick={() => client.send('POST', '/api/users/verify/resend', { email })}
        >
          Send it again
        </button>
        <p>
          <a href="/app/sign-in">Sign in</a>
        </p>
      </EntryPage>
    );
  }
  const signUp = async ({ email: to, password, account_name: name }: Record<string, string>) => {
    const body = { email: to, password, ...(name ? { account_name: name } : {}) };
    await client.send('POST', '/api/users', body);
    setEmail(to);
  };
  return (
    <EntryPage title="Sign up">
      <Form action="Create account" onSubmit={signUp}>
        <Field name="email" label="E-mail" type="email" autocomplete="username" />
        <Field
          name="password"
          label="Password"
          type="password"
          hint="A few words are better than one with symbols."
          autocomplete="new-password"
        />
        <Field name="account_name" label="Name of the account (optional)" isOptional />
      </Form>
      <p>
        <a href="/app/sign-in">Sign in instead</a>
      </p>
    </EntryPage>
  );
}
