-- Mails of events and tickets: each is tried a bounded number of times, and then parked.

ALTER TABLE account_events
  ADD COLUMN attempts integer NOT NULL DEFAULT 0,
  ADD COLUMN next_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN parked_at timestamptz,
  ADD COLUMN told text[] NOT NULL DEFAULT '{}';
DROP INDEX account_events_unmailed;
CREATE INDEX account_events_unmailed ON account_events (created_at, id)
  WHERE mailed_at IS NULL AND parked_at IS NULL;
COMMENT ON COLUMN account_events.attempts IS 'How often its mails were begun';
COMMENT ON COLUMN account_events.next_at IS 'It is tried again from then on; while it is being mailed, when somebody else may try';
COMMENT ON COLUMN account_events.parked_at IS 'When it was given up, and logged; null = it was mailed or waits';
COMMENT ON COLUMN account_events.told IS 'Users who have their mail already: another attempt leaves them out';

ALTER TABLE support_tickets
  ADD COLUMN mailed_at timestamptz,
  ADD COLUMN attempts integer NOT NULL DEFAULT 0,
  ADD COLUMN next_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN parked_at timestamptz;
-- Until now a ticket was there only once its mail was taken.
UPDATE support_tickets SET mailed_at = created_at;
CREATE INDEX support_tickets_unmailed ON support_tickets (created_at, id)
  WHERE mailed_at IS NULL AND parked_at IS NULL;
COMMENT ON TABLE support_tickets IS 'Questions of customers; each is sent by mail as well';
COMMENT ON COLUMN support_tickets.mailed_at IS 'When its mail was taken; null = not yet';
COMMENT ON COLUMN support_tickets.attempts IS 'How often its mail was begun';
COMMENT ON COLUMN support_tickets.next_at IS 'It is tried again from then on; while it is being mailed, when somebody else may try';
COMMENT ON COLUMN support_tickets.parked_at IS 'When it was given up, and logged; null = it was mailed or waits';

-- Closing an account ends its subscription; those that were closed before it did.
UPDATE subscriptions s SET status = 'ended', past_due_since = NULL
  FROM accounts a WHERE a.id = s.account_id AND a.status = 'closed' AND s.status <> 'ended';
