-- What an account has paid for.

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
COMMENT ON TABLE subscriptions IS 'The one subscription of an account; none = nothing was ever bought';
COMMENT ON COLUMN subscriptions.account_id IS 'Who pays';
COMMENT ON COLUMN subscriptions.tier IS 'What for';
COMMENT ON COLUMN subscriptions.status IS 'active; past_due: a payment failed, full access for 7 days; ended';
COMMENT ON COLUMN subscriptions.past_due_since IS 'When the first payment failed; access ends 7 days later';
COMMENT ON COLUMN subscriptions.period_end IS 'Paid until then';
COMMENT ON COLUMN subscriptions.cancel_at_period_end IS 'It ends at period_end instead of being renewed';
COMMENT ON COLUMN subscriptions.provider IS 'Billing provider: test or stripe';
COMMENT ON COLUMN subscriptions.provider_reference IS 'The provider''s id of it';
COMMENT ON COLUMN subscriptions.updated_at IS 'When the newest billing event that had effect happened: older ones have none';

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
COMMENT ON COLUMN checkouts.account_id IS 'Who pays';
COMMENT ON COLUMN checkouts.tier IS 'What for';
COMMENT ON COLUMN checkouts.provider IS 'Where it is paid';
COMMENT ON COLUMN checkouts.status IS 'open until the provider tells how it ended';
COMMENT ON COLUMN checkouts.created_at IS 'When it was begun';
COMMENT ON COLUMN checkouts.expires_at IS 'An open one cannot be paid from then on';

CREATE TABLE billing_events (
  provider text NOT NULL,
  event_id text NOT NULL,
  type text NOT NULL,
  account_id text,
  received_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, event_id)
);
COMMENT ON TABLE billing_events IS 'Events of billing providers that took effect; the key makes a repeat have none';
COMMENT ON COLUMN billing_events.provider IS 'Who sent it';
COMMENT ON COLUMN billing_events.event_id IS 'The provider''s id of it';
COMMENT ON COLUMN billing_events.type IS 'What it tells';
COMMENT ON COLUMN billing_events.account_id IS 'Whom it concerns';
COMMENT ON COLUMN billing_events.received_at IS 'When it came first';

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
COMMENT ON TABLE account_events IS 'What an account is to be told, by mail and webhook: quota.warning, subscription.changed, …';
COMMENT ON COLUMN account_events.id IS 'Order of raising';
COMMENT ON COLUMN account_events.account_id IS 'Who is to be told';
COMMENT ON COLUMN account_events.type IS 'noun.verb';
COMMENT ON COLUMN account_events.dedupe IS 'The same occurrence is raised once';
COMMENT ON COLUMN account_events.data IS 'Body, as a webhook carries it';
COMMENT ON COLUMN account_events.created_at IS 'When it was raised';
COMMENT ON COLUMN account_events.mailed_at IS 'When the mail was sent; null = not yet';
