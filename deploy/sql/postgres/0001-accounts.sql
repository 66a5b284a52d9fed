-- Accounts, the people who act for them, the audit log, notices and support tickets.

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
COMMENT ON TABLE accounts IS 'Customers: each account owns subscriptions, keys and usage';
COMMENT ON COLUMN accounts.id IS 'acc_ and 12 random characters';
COMMENT ON COLUMN accounts.name IS 'Name shown to the account''s users and to the operator';
COMMENT ON COLUMN accounts.status IS 'active; suspended by the operator or closed by its owner: both end all access';
COMMENT ON COLUMN accounts.suspended_reason IS 'Why the operator suspended the account; shown to its users';
COMMENT ON COLUMN accounts.rate_per_s IS 'Calls per second instead of the tier''s; null = the tier''s';
COMMENT ON COLUMN accounts.rate_burst IS 'Burst instead of the tier''s; null = the tier''s';
COMMENT ON COLUMN accounts.calls_per_day IS 'Calls per UTC day instead of the tier''s; null = the tier''s';
COMMENT ON COLUMN accounts.created_at IS 'When the account signed up';
COMMENT ON COLUMN accounts.closed_at IS 'When the account was closed; it is erased 30 days later';

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
COMMENT ON TABLE users IS 'People who sign in for an account';
COMMENT ON COLUMN users.id IS 'usr_ and 12 random characters';
COMMENT ON COLUMN users.account_id IS 'Account that the user acts for';
COMMENT ON COLUMN users.email IS 'Address in lower case, used to sign in';
COMMENT ON COLUMN users.password_hash IS 'scrypt in PHC form: $scrypt$ln=…,r=…,p=…$salt$hash';
COMMENT ON COLUMN users.email_verified_at IS 'When the user proved to own the address; null = not yet';
COMMENT ON COLUMN users.created_at IS 'When the user signed up';
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
COMMENT ON TABLE sessions IS 'Signed-in browsers and programs';
COMMENT ON COLUMN sessions.hash IS 'SHA-256 of the random token in the cookie';
COMMENT ON COLUMN sessions.user_id IS 'User who signed in';
COMMENT ON COLUMN sessions.csrf_token IS 'Token that a changing request must repeat in X-CSRF-Token';
COMMENT ON COLUMN sessions.address IS 'Network address of the sign-in';
COMMENT ON COLUMN sessions.created_at IS 'Time of the sign-in';
COMMENT ON COLUMN sessions.last_seen_at IS 'Last use, to the minute';
COMMENT ON COLUMN sessions.expires_at IS 'When the session ends, used or not';

CREATE TABLE mail_tokens (
  hash bytea PRIMARY KEY,
  user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
  purpose text NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX mail_tokens_user ON mail_tokens (user_id, purpose);
COMMENT ON TABLE mail_tokens IS 'Single-use tokens that were sent by mail; used ones are deleted';
COMMENT ON COLUMN mail_tokens.hash IS 'SHA-256 of the token in the mail';
COMMENT ON COLUMN mail_tokens.user_id IS 'User to whose address the token was sent';
COMMENT ON COLUMN mail_tokens.purpose IS 'What the token may be used for';
COMMENT ON COLUMN mail_tokens.created_at IS 'When the token was sent';
COMMENT ON COLUMN mail_tokens.expires_at IS 'When the token stops being accepted';

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
COMMENT ON TABLE audit_log IS 'Who changed what; kept for 1 year, also after the account is erased';
COMMENT ON COLUMN audit_log.id IS 'Order of writing';
COMMENT ON COLUMN audit_log.at IS 'Time of the change';
COMMENT ON COLUMN audit_log.account_id IS 'Account concerned; null = the platform';
COMMENT ON COLUMN audit_log.actor IS 'user:usr_…, operator:<login>, billing:<provider> or system';
COMMENT ON COLUMN audit_log.action IS 'noun.verb, e.g. key.revoked';
COMMENT ON COLUMN audit_log.target IS 'Id of the changed object';
COMMENT ON COLUMN audit_log.address IS 'Network address that the request came from';
COMMENT ON COLUMN audit_log.detail IS 'What changed; never a secret';

CREATE TABLE notices (
  id text PRIMARY KEY,
  severity text NOT NULL CHECK (severity IN ('info', 'warning', 'outage')),
  message text NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now(),
  until timestamptz
);
COMMENT ON TABLE notices IS 'The operator''s notices to all customers, shown in GET /api/status';
COMMENT ON COLUMN notices.id IS 'ntc_ and 12 random characters';
COMMENT ON COLUMN notices.severity IS 'info, warning or outage';
COMMENT ON COLUMN notices.message IS 'Text of the notice';
COMMENT ON COLUMN notices.published_at IS 'When the notice was published';
COMMENT ON COLUMN notices.until IS 'The notice is shown until then; null = until it is withdrawn';

CREATE TABLE support_tickets (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  tier text NOT NULL,
  subject text NOT NULL,
  message text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX support_tickets_account ON support_tickets (account_id, created_at);
COMMENT ON TABLE support_tickets IS 'Questions of customers; each is also sent by mail';
COMMENT ON COLUMN support_tickets.id IS 'tkt_ and 12 random characters';
COMMENT ON COLUMN support_tickets.account_id IS 'Account that asks';
COMMENT ON COLUMN support_tickets.tier IS 'Tier of the account at the time of the question, which decides the order of answers; none = no subscription';
COMMENT ON COLUMN support_tickets.subject IS 'Subject, one line';
COMMENT ON COLUMN support_tickets.message IS 'Text of the question';
COMMENT ON COLUMN support_tickets.created_at IS 'Time of the question';
