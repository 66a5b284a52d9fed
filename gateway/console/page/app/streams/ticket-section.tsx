import { useState } from 'preact/hooks';
import { ActionButton } from '../parts/action-button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Time } from '../parts/time.tsx';
import { useSession } from '../session/session-context.tsx';

interface Ticket {
  readonly url: string;
  readonly expires_at: string;
}

/** Tickets: the way in for browsers, which cannot send a key in a header. */
export function TicketSection() {
  const { client } = useSession();
  const [ticket, setTicket] = useState<Ticket>();
  return (
    <section class="part">
      <h2>Tickets</h2>
      <p>
        A browser cannot send a key with a socket, and a key in an address would end up in logs. A
        server that has a key asks <code>POST /api/stream/tickets</code> for a ticket instead: it
        opens one socket, once, within 30 s, and says nothing about the key.
      </p>
      <ActionButton
        onClick={async () => setTicket(await client.send<Ticket>('POST', '/api/stream/tickets'))}
      >
        Create a ticket
      </ActionButton>
      {ticket !== undefined && (
        <Dialog title="Ticket for one socket" onClose={() => setTicket(undefined)}>
          <Copyable label="Address" text={ticket.url} />
          <p class="hint">
            Valid once, until <Time of={ticket.expires_at} />.
          </p>
        </Dialog>
      )}
    </section>
  );
}
