import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { Field, Form } from '../parts/form.tsx';
import type { Session } from '../session/client.ts';
import { RequestFailed } from '../session/problem.ts';
import { useSession } from '../session/session-context.tsx';
import { EntryPage } from './entry-page.tsx';

export default function SignIn() {
  const { client } = useSession();
  const { query, route } = useLocation();
  const [needsCode, setNeedsCode] = useState(false);
  const signIn = async ({ email, password, code }: Readonly<Record<string, string>>) => {
    try {
      const body = { email, password, ...(code ? { code } : {}) };
      client.useSession(await client.send<Session>('POST', '/api/session', body));
      route(pageOf(query.to), true);
    } catch (error) {
      const isCode = error instanceof RequestFailed && error.code === 'second_factor_required';
      if (!isCode) throw error;
      setNeedsCode(true);
    }
  };
  return (
    <EntryPage title="Sign in">
      {query.changed === 'password' && (
        <p class="notice">The password is changed. All sign-ins have ended.</p>
      )}
      {query.changed === 'closed' && <p class="notice">The account is closed.</p>}
      <Form action="Sign in" onSubmit={signIn}>
        <Field name="email" label="E-mail" type="email" autocomplete="username" />
        <Field name="password" label="Password" type="password" autocomplete="current-password" />
        {needsCode && (
          <Field
            name="code"
            label="Code or recovery code"
            hint="Six digits of your authenticator."
            autocomplete="one-time-code"
          />
        )}
      </Form>
      <p>
        <a href="/app/forgotten">Forgotten password</a> · <a href="/app/sign-up">Sign up</a>
      </p>
    </EntryPage>
  );
}

/** A page of the console alone: a link must not lead people who sign in to another site. */
function pageOf(to: string | undefined): string {
  return to !== undefined && /^\/app(\/[\w/-]*)?(\?[^#]*)?$/.test(to) ? to : '/app';
}
