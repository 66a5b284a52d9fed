-- API keys, and the triggers that notify all processes within a second when access changes.

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  hash bytea NOT NULL UNIQUE,
  hint text NOT NULL,
  name text NOT NULL,
  scopes text[] NOT NULL,
  allow_cidrs text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  replaced_by text REFERENCES api_keys,
  last_used_at timestamptz,
  last_used_address text
);
CREATE INDEX api_keys_account ON api_keys (account_id, created_at);
COMMENT ON TABLE api_keys IS 'API keys; the keys themselves are not stored anywhere';
COMMENT ON COLUMN api_keys.id IS 'key_ and 12 random characters';
COMMENT ON COLUMN api_keys.account_id IS 'Account that owns the key';
COMMENT ON COLUMN api_keys.hash IS 'HMAC-SHA-256 of the key under the pepper, which is not in the database';
COMMENT ON COLUMN api_keys.hint IS 'Part of the key by which its owner recognises it: pil_live_…ab12';
COMMENT ON COLUMN api_keys.name IS 'Name that its owner gave the key';
COMMENT ON COLUMN api_keys.scopes IS 'What the key may be used for: read, stream';
COMMENT ON COLUMN api_keys.allow_cidrs IS 'Networks from which the key may be used; empty = all';
COMMENT ON COLUMN api_keys.created_at IS 'When the key was created';
COMMENT ON COLUMN api_keys.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN api_keys.expires_at IS 'The key is refused from then on; null = never; set by a rotation';
COMMENT ON COLUMN api_keys.revoked_at IS 'When the key was revoked; null = not revoked';
COMMENT ON COLUMN api_keys.replaced_by IS 'Key that a rotation created in its place';
COMMENT ON COLUMN api_keys.last_used_at IS 'Last use, written about once in ten seconds';
COMMENT ON COLUMN api_keys.last_used_address IS 'Address of the last use';

CREATE TABLE stream_tickets (
  hash bytea PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  key_id text REFERENCES api_keys ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
CREATE INDEX stream_tickets_account ON stream_tickets (account_id, expires_at);
COMMENT ON TABLE stream_tickets IS 'Single-use tickets to open a socket; used ones are deleted';
COMMENT ON COLUMN stream_tickets.hash IS 'SHA-256 of the ticket';
COMMENT ON COLUMN stream_tickets.account_id IS 'Account whose socket the ticket opens';
COMMENT ON COLUMN stream_tickets.key_id IS 'Key that requested the ticket: the socket ends with the key; null = a session requested it';
COMMENT ON COLUMN stream_tickets.expires_at IS '30 s after the ticket was created';

CREATE TABLE access_changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  account_id text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX access_changes_xid ON access_changes (xid);
COMMENT ON TABLE access_changes IS 'Accounts whose access has changed; written by triggers, deleted after an hour';
COMMENT ON COLUMN access_changes.id IS 'Order of writing';
COMMENT ON COLUMN access_changes.xid IS 'Writing transaction: readers continue from the oldest transaction that was still open, so they miss no row';
COMMENT ON COLUMN access_changes.account_id IS 'Account whose cached access is invalid';
COMMENT ON COLUMN access_changes.at IS 'When the row was written';

-- Names the schema of the trigger's table, so that the function works with any search_path.
CREATE FUNCTION tell_access_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  row_of jsonb := to_jsonb(CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END);
  account text := CASE WHEN TG_TABLE_NAME = 'accounts' THEN row_of->>'id' ELSE row_of->>'account_id' END;
BEGIN
  EXECUTE format('INSERT INTO %I.access_changes (account_id) VALUES ($1)', TG_TABLE_SCHEMA) USING account;
  PERFORM pg_notify('access_' || TG_TABLE_SCHEMA, account);
  RETURN NULL;
END $$;

CREATE TRIGGER accounts_access
  AFTER UPDATE OR DELETE ON accounts
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();
CREATE TRIGGER subscriptions_access
  AFTER INSERT OR UPDATE OR DELETE ON subscriptions
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();
CREATE TRIGGER api_keys_access
  AFTER DELETE OR UPDATE OF hash, scopes, allow_cidrs, expires_at, revoked_at ON api_keys
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();
