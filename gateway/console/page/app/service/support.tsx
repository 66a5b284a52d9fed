import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.tsx';
import { PageOf } from '../parts/page.tsx';
import { useSession } from '../session/session-context.tsx';

interface Ticket {
  readonly ticket: string;
  readonly channel: string;
}

/** A request to support; the answer comes by mail. */
export default function Support() {
  const { client } = useSession();
  const [sent, setSent] = useState<Ticket>();
  const { email } = client.session()!.user;
  return (
    <PageOf title="Support">
      {sent === undefined ? (
        <Form
          action="Send"
          onSubmit={async ({ subject, message }) => {
            setSent(await client.send<Ticket>('POST', '/api/support', { subject, message }));
          }}
        >
          <Field name="subject" label="Subject" />
          <div class="field">
            <label for="message">Message</label>
            <textarea id="message" name="message" rows={8} maxLength={10_000} required />
            <p class="hint">
              Name the request id, the symbol or the cursor, and the time, if you have them. Never
              send a key.
            </p>
          </div>
        </Form>
      ) : (
        <div class="notice" role="status">
          <p>
            Ticket <code>{sent.ticket}</code>, {sent.channel} support. The answer goes to {email}.
          </p>
          <button type="button" onClick={() => setSent(undefined)}>
            Write another
          </button>
        </div>
      )}
    </PageOf>
  );
}
