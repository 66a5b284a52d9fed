-- Attempts counted over all processes, what is known of sign-ins, and the second factor.

CREATE TABLE attempts (
  key bytea PRIMARY KEY,
  count integer NOT NULL,
  ends_at timestamptz NOT NULL
);
CREATE INDEX attempts_end ON attempts (ends_at);
COMMENT ON TABLE attempts IS 'Attempts at passwords, codes, sign-ups and mails within a window, of all processes; deleted when the window has ended';
COMMENT ON COLUMN attempts.key IS 'SHA-256 of the limit and of what it counts for: a network, an address, or both';
COMMENT ON COLUMN attempts.count IS 'Attempts in the window';
COMMENT ON COLUMN attempts.ends_at IS 'End of the window, which began with its first attempt';

CREATE TABLE sign_in_networks (
  user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
  network text NOT NULL,
  last_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, network)
);
CREATE INDEX sign_in_networks_last ON sign_in_networks (last_at);
COMMENT ON TABLE sign_in_networks IS 'Networks from which a user has signed in; a sign-in from any other network is mailed';
COMMENT ON COLUMN sign_in_networks.user_id IS 'User who signed in';
COMMENT ON COLUMN sign_in_networks.network IS 'IPv4 address, or the /64 of an IPv6 address';
COMMENT ON COLUMN sign_in_networks.last_at IS 'Last sign-in from the network; it is forgotten after 90 days';

ALTER TABLE sessions
  ADD COLUMN user_agent text NOT NULL DEFAULT '',
  ADD COLUMN second_factor_at timestamptz;
COMMENT ON COLUMN sessions.user_agent IS 'Start of the User-Agent header of the sign-in';
COMMENT ON COLUMN sessions.second_factor_at IS 'When the session last proved the second factor; null = never';

CREATE TABLE second_factors (
  user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  confirmed_at timestamptz,
  last_step bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE second_factors IS 'Authenticators (TOTP, RFC 6238) of users';
COMMENT ON COLUMN second_factors.user_id IS 'User who owns the authenticator';
COMMENT ON COLUMN second_factors.sealed IS 'The secret under AES-256-GCM; the key is derived from the pepper, which is not in the database';
COMMENT ON COLUMN second_factors.created_at IS 'When the set-up began';
COMMENT ON COLUMN second_factors.confirmed_at IS 'When a first code confirmed the set-up; null = not in force yet';
COMMENT ON COLUMN second_factors.last_step IS 'Time step of the last accepted code: this and earlier steps are refused, so a code works once';

CREATE TABLE recovery_codes (
  hash bytea PRIMARY KEY,
  user_id text NOT NULL REFERENCES second_factors ON DELETE CASCADE
);
CREATE INDEX recovery_codes_user ON recovery_codes (user_id);
COMMENT ON TABLE recovery_codes IS 'Single-use codes in place of the authenticator; used ones are deleted';
COMMENT ON COLUMN recovery_codes.hash IS 'SHA-256 of the code, which has 100 random bits';
COMMENT ON COLUMN recovery_codes.user_id IS 'User whose code it is';
