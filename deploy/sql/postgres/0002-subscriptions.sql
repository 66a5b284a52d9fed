-- Subscriptions, payments, and the events that follow from them.

CREATE TABLE subscriptions (
  account_id text PRIMARY KEY REFERENCES accounts ON DELETE CASCADE,
  tier text NOT NULL CHECK (tier IN ('basic', 'pro', 'institutional')),
  status text NOT NULL CHECK (status IN ('active', 'past_due', 'ended')),
  past_due_since timestamptz,
  period_end timestamptz NOT NULL,
  cancel_at_period_end boolean NOT NULL DEFAULT false,
  provider text NOT NULL,
  provider_reference text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((status = 'past_due') = (past_due_since IS NOT NULL))
);
CREATE INDEX subscriptions_reference ON subscriptions (provider, provider_reference);
COMMENT ON TABLE subscriptions IS 'The one subscription of each account; an account that never bought anything has no row';
COMMENT ON COLUMN subscriptions.account_id IS 'Account that pays';
COMMENT ON COLUMN subscriptions.tier IS 'Tier that is paid for';
COMMENT ON COLUMN subscriptions.status IS 'active; past_due: a payment failed, full access continues for 7 days; ended';
COMMENT ON COLUMN subscriptions.past_due_since IS 'When the first payment failed; access ends 7 days later';
COMMENT ON COLUMN subscriptions.period_end IS 'End of the paid period';
COMMENT ON COLUMN subscriptions.cancel_at_period_end IS 'The subscription ends at period_end instead of being renewed';
COMMENT ON COLUMN subscriptions.provider IS 'Billing provider: test or stripe';
COMMENT ON COLUMN subscriptions.provider_reference IS 'The provider''s id of the subscription';
COMMENT ON COLUMN subscriptions.updated_at IS 'Time of the newest billing event that had effect';

CREATE TABLE checkouts (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  tier text NOT NULL CHECK (tier IN ('basic', 'pro', 'institutional')),
  provider text NOT NULL,
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'failed')),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX checkouts_account ON checkouts (account_id);
COMMENT ON TABLE checkouts IS 'Payments that were begun';
COMMENT ON COLUMN checkouts.id IS 'chk_ and 12 random characters';
COMMENT ON COLUMN checkouts.account_id IS 'Account that pays';
COMMENT ON COLUMN checkouts.tier IS 'Tier that is paid for';
COMMENT ON COLUMN checkouts.provider IS 'Billing provider: test or stripe';
COMMENT ON COLUMN checkouts.status IS 'open until the provider reports the outcome; paid; failed';
COMMENT ON COLUMN checkouts.created_at IS 'When the payment was begun';
COMMENT ON COLUMN checkouts.expires_at IS 'An open payment cannot be completed from then on';

CREATE TABLE billing_events (
  provider text NOT NULL,
  event_id text NOT NULL,
  type text NOT NULL,
  account_id text,
  received_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, event_id)
);
COMMENT ON TABLE billing_events IS 'Events of billing providers that took effect; the primary key keeps repeats without effect';
COMMENT ON COLUMN billing_events.provider IS 'Provider that sent the event';
COMMENT ON COLUMN billing_events.event_id IS 'The provider''s id of the event';
COMMENT ON COLUMN billing_events.type IS 'Type of the event';
COMMENT ON COLUMN billing_events.account_id IS 'Account concerned';
COMMENT ON COLUMN billing_events.received_at IS 'When the event was first received';

CREATE TABLE account_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  type text NOT NULL,
  dedupe text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  mailed_at timestamptz,
  UNIQUE (account_id, dedupe)
);
CREATE INDEX account_events_unmailed ON account_events (id) WHERE mailed_at IS NULL;
COMMENT ON TABLE account_events IS 'Notifications to accounts, by mail and webhook: quota.warning, subscription.changed, …';
COMMENT ON COLUMN account_events.id IS 'Order in which events were raised';
COMMENT ON COLUMN account_events.account_id IS 'Account to notify';
COMMENT ON COLUMN account_events.type IS 'Event type, noun.verb';
COMMENT ON COLUMN account_events.dedupe IS 'Identifies the occurrence, which is raised only once per account';
COMMENT ON COLUMN account_events.data IS 'Body, as webhooks carry it';
COMMENT ON COLUMN account_events.created_at IS 'When the event was raised';
COMMENT ON COLUMN account_events.mailed_at IS 'When the mail was sent; null = not yet';
