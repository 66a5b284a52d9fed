-- Mails of events and tickets are attempted a bounded number of times, and then parked.

ALTER TABLE account_events
  ADD COLUMN attempts integer NOT NULL DEFAULT 0,
  ADD COLUMN next_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN parked_at timestamptz,
  ADD COLUMN told text[] NOT NULL DEFAULT '{}';
DROP INDEX account_events_unmailed;
CREATE INDEX account_events_unmailed ON account_events (created_at, id)
  WHERE mailed_at IS NULL AND parked_at IS NULL;
COMMENT ON COLUMN account_events.attempts IS 'Number of attempts to send the mails of the event';
COMMENT ON COLUMN account_events.next_at IS 'Earliest next attempt; during an attempt, when another process may try';
COMMENT ON COLUMN account_events.parked_at IS 'When the event was given up and logged; null = mailed or waiting';
COMMENT ON COLUMN account_events.told IS 'Ids of the users who have received their mail; further attempts skip them';

ALTER TABLE support_tickets
  ADD COLUMN mailed_at timestamptz,
  ADD COLUMN attempts integer NOT NULL DEFAULT 0,
  ADD COLUMN next_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN parked_at timestamptz;
-- Before this column, a ticket was stored only after the mail server had accepted its mail.
UPDATE support_tickets SET mailed_at = created_at;
CREATE INDEX support_tickets_unmailed ON support_tickets (created_at, id)
  WHERE mailed_at IS NULL AND parked_at IS NULL;
COMMENT ON TABLE support_tickets IS 'Questions of customers; each is also sent by mail';
COMMENT ON COLUMN support_tickets.mailed_at IS 'When the mail server accepted the mail; null = not yet';
COMMENT ON COLUMN support_tickets.attempts IS 'Number of attempts to send the mail';
COMMENT ON COLUMN support_tickets.next_at IS 'Earliest next attempt; during an attempt, when another process may try';
COMMENT ON COLUMN support_tickets.parked_at IS 'When the ticket was given up and logged; null = mailed or waiting';

-- Closing an account ends its subscription since this version: end those of accounts closed before.
UPDATE subscriptions s SET status = 'ended', past_due_since = NULL
  FROM accounts a WHERE a.id = s.account_id AND a.status = 'closed' AND s.status <> 'ended';
