import { useLocation } from 'preact-iso';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { useNew } from '../parts/use-new.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { STATES, type Ticket, type TicketPage } from './bodies.ts';
import { MessageField } from './message-field.tsx';

const EVERY_MS = 30_000;

/** Questions to support, newest first. */
export default function Tickets() {
  const { query } = useLocation();
  const before = query.before === undefined ? '' : `&before=${encodeURIComponent(query.before)}`;
  const tickets = useLoad<TicketPage>(`/api/support?limit=50${before}`, EVERY_MS);
  const [isWriting, setWriting] = useNew();
  const write = (
    <button type="button" class="main" onClick={() => setWriting(true)}>
      Write to support
    </button>
  );
  return (
    <PageOf title="Support" action={write}>
      <WhenLoaded of={tickets} rows={5}>
        {({ data, next }) => <TicketTable tickets={data} next={next} />}
      </WhenLoaded>
      {isWriting && <NewTicketDialog onClose={() => setWriting(false)} />}
    </PageOf>
  );
}

function TicketTable(props: { readonly tickets: readonly Ticket[]; readonly next: string | null }) {
  const { tickets, next } = props;
  if (tickets.length === 0) {
    return (
      <p class="empty">
        No tickets. Write to us about a pill, a socket or a bill; the answer is shown here and
        mailed.
      </p>
    );
  }
  const older = next === null ? null : new URLSearchParams(next.split('?')[1]).get('before');
  return (
    <>
      <table class="stacked">
        <thead>
          <tr>
            <th>Subject</th>
            <th>State</th>
            <th>Opened</th>
          </tr>
        </thead>
        <tbody>
          {tickets.map(({ id, subject, state, created_at: at }) => (
            <tr key={id} class={state === 'closed' ? 'ended' : ''}>
              <td data-title="Subject" class="wide">
                <a href={`/app/support/${id}`}>{subject}</a>
                <code class="id">{id}</code>
              </td>
              <td data-title="State">{STATES[state]}</td>
              <td data-title="Opened">
                <Time of={at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {older !== null && <a href={`/app/support?before=${older}`}>Older tickets</a>}
    </>
  );
}

function NewTicketDialog({ onClose }: { readonly onClose: () => void }) {
  const { client } = useSession();
  const { route } = useLocation();
  return (
    <Dialog title="Write to support" onClose={onClose}>
      <Form
        action="Send"
        onSubmit={async ({ subject, message }) => {
          const body = { subject, message };
          const { ticket } = await client.send<{ ticket: string }>('POST', '/api/support', body);
          onClose();
          route(`/app/support/${ticket}`);
        }}
      >
        <Field name="subject" label="Subject" />
        <MessageField hint="Name the request id, the symbol or the cursor, and the time, if you have them. Never send a key." />
      </Form>
    </Dialog>
  );
}
