-- Accounts and who acts for them.

CREATE TABLE accounts (
  id text PRIMARY KEY,
  name text NOT NULL,
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'closed')),
  suspended_reason text,
  rate_per_s integer CHECK (rate_per_s > 0),
  rate_burst integer CHECK (rate_burst > 0),
  calls_per_day integer CHECK (calls_per_day > 0),
  created_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz
);
COMMENT ON TABLE accounts IS 'A customer: what subscriptions, keys and usage belong to';
COMMENT ON COLUMN accounts.id IS 'acc_ and 12 random characters';
COMMENT ON COLUMN accounts.name IS 'Name shown to its users and to the operator';
COMMENT ON COLUMN accounts.status IS 'active; suspended by the operator; closed by its owner: both end all access';
COMMENT ON COLUMN accounts.suspended_reason IS 'Why the operator suspended it; told to its users';
COMMENT ON COLUMN accounts.rate_per_s IS 'Calls a second instead of the tier''s; null = the tier''s';
COMMENT ON COLUMN accounts.rate_burst IS 'Burst instead of the tier''s; null = the tier''s';
COMMENT ON COLUMN accounts.calls_per_day IS 'Calls per UTC day instead of the tier''s; null = the tier''s';
COMMENT ON COLUMN accounts.created_at IS 'When it signed up';
COMMENT ON COLUMN accounts.closed_at IS 'When it was closed; it is erased 30 days later';

CREATE TABLE users (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  email text NOT NULL UNIQUE CHECK (email = lower(email)),
  password_hash text NOT NULL,
  email_verified_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_sign_in_at timestamptz
);
CREATE INDEX users_account ON users (account_id);
COMMENT ON TABLE users IS 'A person who signs in for an account';
COMMENT ON COLUMN users.id IS 'usr_ and 12 random characters';
COMMENT ON COLUMN users.account_id IS 'The account it acts for';
COMMENT ON COLUMN users.email IS 'Address in lower case; what one signs in with';
COMMENT ON COLUMN users.password_hash IS 'scrypt in PHC form: $scrypt$ln=…,r=…,p=…$salt$hash';
COMMENT ON COLUMN users.email_verified_at IS 'When the address was shown to be the user''s; null = not yet';
COMMENT ON COLUMN users.created_at IS 'When it signed up';
COMMENT ON COLUMN users.last_sign_in_at IS 'Last successful sign-in';

CREATE TABLE sessions (
  hash bytea PRIMARY KEY,
  user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
  csrf_token text NOT NULL,
  address text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
COMMENT ON TABLE sessions IS 'A signed-in browser or program';
COMMENT ON COLUMN sessions.hash IS 'SHA-256 of the random token in the cookie';
COMMENT ON COLUMN sessions.user_id IS 'Who signed in';
COMMENT ON COLUMN sessions.csrf_token IS 'What a request that changes something must repeat in X-CSRF-Token';
COMMENT ON COLUMN sessions.address IS 'Address it signed in from';
COMMENT ON COLUMN sessions.created_at IS 'When it signed in';
COMMENT ON COLUMN sessions.last_seen_at IS 'Last use, to the minute';
COMMENT ON COLUMN sessions.expires_at IS 'It ends then, used or not';

CREATE TABLE mail_tokens (
  hash bytea PRIMARY KEY,
  user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
  purpose text NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX mail_tokens_user ON mail_tokens (user_id, purpose);
COMMENT ON TABLE mail_tokens IS 'Single-use proofs that were sent by mail; used ones are deleted';
COMMENT ON COLUMN mail_tokens.hash IS 'SHA-256 of the token in the mail';
COMMENT ON COLUMN mail_tokens.user_id IS 'Whose address it was sent to';
COMMENT ON COLUMN mail_tokens.purpose IS 'What it may be used for';
COMMENT ON COLUMN mail_tokens.created_at IS 'When it was sent';
COMMENT ON COLUMN mail_tokens.expires_at IS 'It is refused from then on';

CREATE TABLE audit_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  account_id text,
  actor text NOT NULL,
  action text NOT NULL,
  target text,
  address text,
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_log_account ON audit_log (account_id, at);
COMMENT ON TABLE audit_log IS 'Who changed what, kept for 1 year; survives the account';
COMMENT ON COLUMN audit_log.id IS 'Order of writing';
COMMENT ON COLUMN audit_log.at IS 'When it was done';
COMMENT ON COLUMN audit_log.account_id IS 'Account concerned; null = the platform';
COMMENT ON COLUMN audit_log.actor IS 'user:usr_…, operator:<login>, billing:<provider> or system';
COMMENT ON COLUMN audit_log.action IS 'noun.verb, e.g. key.revoked';
COMMENT ON COLUMN audit_log.target IS 'Id of what it was done to';
COMMENT ON COLUMN audit_log.address IS 'Network address it was asked from';
COMMENT ON COLUMN audit_log.detail IS 'What changed; never a secret';

CREATE TABLE notices (
  id text PRIMARY KEY,
  severity text NOT NULL CHECK (severity IN ('info', 'warning', 'outage')),
  message text NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now(),
  until timestamptz
);
COMMENT ON TABLE notices IS 'What the operator tells all customers, in GET /api/status';
COMMENT ON COLUMN notices.id IS 'ntc_ and 12 random characters';
COMMENT ON COLUMN notices.severity IS 'How much it matters';
COMMENT ON COLUMN notices.message IS 'The text';
COMMENT ON COLUMN notices.published_at IS 'When it was published';
COMMENT ON COLUMN notices.until IS 'It is shown until then; null = until it is withdrawn';

CREATE TABLE support_tickets (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  tier text NOT NULL,
  subject text NOT NULL,
  message text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX support_tickets_account ON support_tickets (account_id, created_at);
COMMENT ON TABLE support_tickets IS 'Questions of customers; each was sent by mail as well';
COMMENT ON COLUMN support_tickets.id IS 'tkt_ and 12 random characters';
COMMENT ON COLUMN support_tickets.account_id IS 'Who asks';
COMMENT ON COLUMN support_tickets.tier IS 'Tier when it was asked: it decides the order; none without a subscription';
COMMENT ON COLUMN support_tickets.subject IS 'One line';
COMMENT ON COLUMN support_tickets.message IS 'The question';
COMMENT ON COLUMN support_tickets.created_at IS 'When it was asked';
