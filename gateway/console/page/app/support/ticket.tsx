import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { ActionButton } from '../parts/action-button.tsx';
import { Form } from '../parts/form.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { STATES, type TicketWithMessages } from './bodies.ts';
import { MessageField } from './message-field.tsx';

const EVERY_MS = 30_000;

/** A ticket: what customer and support wrote, and a field to write again. */
export default function TicketPage() {
  const { client } = useSession();
  const { params } = useRoute();
  const path = `/api/support/${params.id}`;
  const ticket = useLoad<TicketWithMessages>(path, EVERY_MS);
  // A form that was sent begins anew.
  const [sent, setSent] = useState(0);
  const close = ticket.data !== undefined && ticket.data.state !== 'closed' && (
    <ActionButton
      onClick={async () => {
        await client.send('PATCH', path, { state: 'closed' });
        ticket.reload();
      }}
    >
      Close ticket
    </ActionButton>
  );
  return (
    <PageOf title={ticket.data?.subject ?? 'Ticket'} action={close}>
      <p>
        <a href="/app/support">All tickets</a>
      </p>
      <WhenLoaded of={ticket} rows={5}>
        {(body) => <Messages of={body} />}
      </WhenLoaded>
      {ticket.data !== undefined && (
        <Form
          key={sent}
          action="Send"
          onSubmit={async ({ message }) => {
            await client.send('POST', `${path}/messages`, { message });
            setSent((count) => count + 1);
            ticket.reload();
          }}
        >
          <MessageField
            {...(ticket.data.state === 'closed'
              ? { hint: 'A message opens the ticket again.' }
              : {})}
          />
        </Form>
      )}
    </PageOf>
  );
}

function Messages({ of: ticket }: { readonly of: TicketWithMessages }) {
  return (
    <>
      <p role="status">
        {STATES[ticket.state]}. <code>{ticket.id}</code>
      </p>
      <ol class="messages">
        {ticket.messages.map(({ author, message, created_at: at }) => (
          <li key={at} class={author}>
            <p class="hint">
              {author === 'customer' ? 'You' : 'Support'}, <Time of={at} />
            </p>
            <p class="text">{message}</p>
          </li>
        ))}
      </ol>
    </>
  );
}
