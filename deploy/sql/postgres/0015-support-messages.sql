-- Tickets have a state and an exchange of messages, so that customers read answers in the console.

ALTER TABLE support_tickets
  ADD COLUMN state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'closed'));
-- Answers to earlier tickets went by mail alone; whether they were given is not known here.
UPDATE support_tickets SET state = 'closed';
CREATE INDEX support_tickets_waiting ON support_tickets (created_at, id) WHERE state = 'open';
COMMENT ON COLUMN support_tickets.state IS 'open = support is to answer; answered = support wrote last; closed = settled, until the customer writes again';

CREATE TABLE support_messages (
  id text PRIMARY KEY,
  ticket_id text NOT NULL REFERENCES support_tickets ON DELETE CASCADE,
  author text NOT NULL CHECK (author IN ('customer', 'support')),
  message text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  mailed_at timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL DEFAULT now(),
  parked_at timestamptz,
  told text[] NOT NULL DEFAULT '{}'
);
CREATE INDEX support_messages_ticket ON support_messages (ticket_id, created_at, id);
CREATE INDEX support_messages_unmailed ON support_messages (created_at, id)
  WHERE mailed_at IS NULL AND parked_at IS NULL;
COMMENT ON TABLE support_messages IS 'What customer and support wrote about a ticket after its question; each is also sent by mail';
COMMENT ON COLUMN support_messages.id IS 'smg_ and 12 random characters';
COMMENT ON COLUMN support_messages.ticket_id IS 'Ticket that the message is about';
COMMENT ON COLUMN support_messages.author IS 'customer = mailed to support; support = mailed to the verified users of the account';
COMMENT ON COLUMN support_messages.message IS 'Text of the message';
COMMENT ON COLUMN support_messages.created_at IS 'Time of the message';
COMMENT ON COLUMN support_messages.mailed_at IS 'When the mail server accepted the mail; null = not yet';
COMMENT ON COLUMN support_messages.attempts IS 'Number of attempts to send the mail';
COMMENT ON COLUMN support_messages.next_at IS 'Earliest next attempt; during an attempt, when another process may try';
COMMENT ON COLUMN support_messages.parked_at IS 'When the message was given up and logged; null = mailed or waiting';
COMMENT ON COLUMN support_messages.told IS 'Ids of the users who have received the answer; further attempts skip them';
