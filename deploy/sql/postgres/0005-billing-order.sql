-- Billing events may arrive in any order, and an account has one open payment.

ALTER TABLE billing_events
  ADD COLUMN reference text,
  ADD COLUMN at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN tier text CHECK (tier IN ('basic', 'pro', 'institutional')),
  ADD COLUMN period_end timestamptz;
UPDATE billing_events SET at = received_at;
CREATE INDEX billing_events_reference ON billing_events (provider, reference, at);
COMMENT ON TABLE billing_events IS 'Events of billing providers, each once; the state of a subscription follows from all of its events';
COMMENT ON COLUMN billing_events.reference IS 'The provider''s id of the subscription; null in rows older than this column';
COMMENT ON COLUMN billing_events.at IS 'Time of the event by the provider''s clock, never later than its receipt';
COMMENT ON COLUMN billing_events.tier IS 'Tier that was paid for; null = unchanged';
COMMENT ON COLUMN billing_events.period_end IS 'End of the paid period; null = nothing was paid';
COMMENT ON COLUMN subscriptions.updated_at IS 'Time of the newest billing event that had effect';

ALTER TABLE checkouts DROP CONSTRAINT checkouts_status_check;
ALTER TABLE checkouts ADD CONSTRAINT checkouts_status_check
  CHECK (status IN ('open', 'paid', 'failed', 'void'));
UPDATE checkouts c SET status = 'void'
WHERE status = 'open' AND EXISTS (
  SELECT FROM checkouts n
  WHERE n.account_id = c.account_id AND (n.created_at, n.id) > (c.created_at, c.id));
CREATE UNIQUE INDEX checkouts_open ON checkouts (account_id) WHERE status = 'open';
COMMENT ON COLUMN checkouts.status IS 'open until the provider reports the outcome; paid; failed; void: a newer payment was begun';
