-- Custom authentication of Institutional accounts: signed requests and tokens of an issuer of theirs.

CREATE TABLE authentication_schemes (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  key_id text REFERENCES api_keys ON DELETE CASCADE,
  name text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('signature', 'token')),
  algorithms text[] NOT NULL,
  public_key bytea,
  sealed bytea,
  issuer text,
  jwks_url text,
  scope_claim text,
  scope_map jsonb NOT NULL DEFAULT '{}',
  scopes text[] NOT NULL,
  allow_cidrs text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  expires_at timestamptz,
  trial_until timestamptz,
  trial_attempts integer NOT NULL DEFAULT 0,
  trial_report jsonb,
  tried_at timestamptz,
  is_on boolean NOT NULL DEFAULT false,
  removed_at timestamptz,
  last_used_at timestamptz,
  last_used_address text
);
CREATE INDEX authentication_schemes_account ON authentication_schemes (account_id, created_at);
COMMENT ON TABLE authentication_schemes IS 'Ways to authenticate beside API keys; what a scheme verifies never changes, a new scheme replaces it';
COMMENT ON COLUMN authentication_schemes.id IS 'aut_ and 12 random characters: keyid of signatures, audience of tokens; not secret';
COMMENT ON COLUMN authentication_schemes.account_id IS 'Account that owns the scheme';
COMMENT ON COLUMN authentication_schemes.key_id IS 'Key that the scheme stands for: it then has at most the rights and the life of this key; null = the account';
COMMENT ON COLUMN authentication_schemes.name IS 'Name that its owner gave the scheme';
COMMENT ON COLUMN authentication_schemes.kind IS 'signature = RFC 9421; token = JWT of an issuer';
COMMENT ON COLUMN authentication_schemes.algorithms IS 'Accepted algorithms; a signature scheme has exactly one';
COMMENT ON COLUMN authentication_schemes.public_key IS 'SubjectPublicKeyInfo in DER; null = hmac-sha256 or token';
COMMENT ON COLUMN authentication_schemes.sealed IS 'Secret of hmac-sha256, sealed for the scheme (AES-256-GCM); null = not hmac-sha256';
COMMENT ON COLUMN authentication_schemes.issuer IS 'Value of iss; null = signature';
COMMENT ON COLUMN authentication_schemes.jwks_url IS 'Where the public keys of the issuer are read; null = signature';
COMMENT ON COLUMN authentication_schemes.scope_claim IS 'Claim that lists what a token may do; null = each token has all scopes of the scheme';
COMMENT ON COLUMN authentication_schemes.scope_map IS 'Scopes by value of the claim; a value that is not listed counts if it is the name of a scope';
COMMENT ON COLUMN authentication_schemes.scopes IS 'The most that the scheme may be used for, as of keys';
COMMENT ON COLUMN authentication_schemes.allow_cidrs IS 'Networks from which the scheme may be used; empty = all';
COMMENT ON COLUMN authentication_schemes.created_at IS 'When the scheme was created';
COMMENT ON COLUMN authentication_schemes.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN authentication_schemes.expires_at IS 'The scheme is refused from then on; null = never';
COMMENT ON COLUMN authentication_schemes.trial_until IS 'Until then a client may try the scheme while it is off; null = no trial yet';
COMMENT ON COLUMN authentication_schemes.trial_attempts IS 'Requests of the present trial that were reported';
COMMENT ON COLUMN authentication_schemes.trial_report IS 'Result of the last request of a trial: which part failed';
COMMENT ON COLUMN authentication_schemes.tried_at IS 'Last trial that succeeded; null = none: the scheme cannot be switched on';
COMMENT ON COLUMN authentication_schemes.is_on IS 'Whether the scheme is accepted';
COMMENT ON COLUMN authentication_schemes.removed_at IS 'When the scheme was removed, for good; null = not removed';
COMMENT ON COLUMN authentication_schemes.last_used_at IS 'Last use, written about once in ten seconds';
COMMENT ON COLUMN authentication_schemes.last_used_address IS 'Address of the last use';

CREATE TRIGGER authentication_schemes_access
  AFTER DELETE OR UPDATE OF name, scopes, allow_cidrs, expires_at, trial_until, is_on, removed_at, sealed
  ON authentication_schemes
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();

-- No reference to the scheme: an insert then locks no row of it, and the rows live for minutes.
CREATE TABLE authentication_nonces (
  scheme_id text NOT NULL,
  nonce bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (scheme_id, nonce)
);
CREATE INDEX authentication_nonces_expiry ON authentication_nonces (expires_at);
COMMENT ON TABLE authentication_nonces IS 'Nonces of signed requests, so that no process accepts a request again';
COMMENT ON COLUMN authentication_nonces.scheme_id IS 'Scheme that verified the signature';
COMMENT ON COLUMN authentication_nonces.nonce IS 'First 16 bytes of the SHA-256 of the nonce';
COMMENT ON COLUMN authentication_nonces.expires_at IS 'The row may be deleted from then on: no process accepts a signature this old';

ALTER TABLE accounts ADD COLUMN keys_refused boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN accounts.keys_refused IS 'Whether API keys are refused, so that authentication schemes are the only way in for programs';
ALTER TABLE api_keys ADD COLUMN secret_refused boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN api_keys.secret_refused IS 'Whether the key itself is refused, so that its authentication schemes are the only way to use its rights';
DROP TRIGGER api_keys_access ON api_keys;
CREATE TRIGGER api_keys_access
  AFTER DELETE OR UPDATE OF hash, scopes, allow_cidrs, expires_at, revoked_at, secret_refused ON api_keys
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();

ALTER TABLE stream_tickets ADD COLUMN scheme_id text REFERENCES authentication_schemes ON DELETE CASCADE;
ALTER TABLE stream_tickets ADD COLUMN credential_ends_at timestamptz;
COMMENT ON COLUMN stream_tickets.scheme_id IS 'Authentication scheme that requested the ticket: the socket ends with the scheme; null = a key or a session did';
COMMENT ON COLUMN stream_tickets.credential_ends_at IS 'When the token that requested the ticket ends, and the socket with it; null = not requested with a token';
