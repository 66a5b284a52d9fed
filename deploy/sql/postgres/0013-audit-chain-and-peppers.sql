-- A hash chain of each account's audit log, versions of the pepper, and counts of security events.

ALTER TABLE audit_log ADD COLUMN previous bytea NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN hash bytea NOT NULL DEFAULT '';
COMMENT ON COLUMN audit_log.previous IS 'Hash of the account''s entry before; 32 zero bytes = the first entry; set by a trigger';
COMMENT ON COLUMN audit_log.hash IS 'SHA-256 of audit_content of this entry, which contains previous; set by a trigger';

CREATE TABLE audit_chains (
  chain text PRIMARY KEY,
  head_id bigint NOT NULL DEFAULT 0,
  head_hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  anchor_id bigint NOT NULL DEFAULT 0,
  anchor_hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
);
COMMENT ON TABLE audit_chains IS 'Both ends of the hash chain of each account; its row is locked while an entry is added';
COMMENT ON COLUMN audit_chains.chain IS 'Account id; empty = the platform';
COMMENT ON COLUMN audit_chains.head_id IS 'Id of the newest entry';
COMMENT ON COLUMN audit_chains.head_hash IS 'Hash of the newest entry';
COMMENT ON COLUMN audit_chains.anchor_id IS 'Id of the last entry that retention deleted; 0 = none';
COMMENT ON COLUMN audit_chains.anchor_hash IS 'Hash of the last deleted entry: the oldest remaining entry continues from it';

-- Keys sorted by code point, no blanks, numbers as PostgreSQL stores them.
CREATE FUNCTION canonical_json(value jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE jsonb_typeof(value)
    WHEN 'object' THEN (
      SELECT '{' || coalesce(string_agg(to_jsonb(e.key)::text || ':' || canonical_json(e.value), ','
        ORDER BY e.key COLLATE "C"), '') || '}' FROM jsonb_each(value) e)
    WHEN 'array' THEN (
      SELECT '[' || coalesce(string_agg(canonical_json(e.value), ',' ORDER BY e.place), '') || ']'
      FROM jsonb_array_elements(value) WITH ORDINALITY e(value, place))
    ELSE value::text
  END;
END $$;

CREATE FUNCTION audit_content(entry audit_log) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT canonical_json(jsonb_build_object(
    'account', entry.account_id, 'action', entry.action, 'actor', entry.actor,
    'address', entry.address,
    'at', to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'detail', entry.detail, 'id', entry.id, 'previous', encode(entry.previous, 'hex'),
    'target', entry.target))
$$;

-- The id is taken under the lock, so that ids follow the chain. A definer's function, so that no
-- process needs more than INSERT and SELECT on the log.
CREATE FUNCTION chain_audit() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  own text := coalesce(NEW.account_id, '');
BEGIN
  SELECT head_hash INTO NEW.previous FROM audit_chains WHERE chain = own FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO audit_chains (chain) VALUES (own) ON CONFLICT DO NOTHING;
    SELECT head_hash INTO NEW.previous FROM audit_chains WHERE chain = own FOR UPDATE;
  END IF;
  NEW.id := nextval(pg_get_serial_sequence('audit_log', 'id'));
  NEW.hash := sha256(convert_to(audit_content(NEW), 'UTF8'));
  UPDATE audit_chains SET head_id = NEW.id, head_hash = NEW.hash WHERE chain = own;
  RETURN NEW;
END $$;
CREATE TRIGGER audit_log_chain BEFORE INSERT ON audit_log
  FOR EACH ROW EXECUTE FUNCTION chain_audit();

-- Deletes entries older than `kept`, at most `most`, and moves the anchors. Of each chain only the
-- oldest entries go, so an entry that is due waits for the ones before it.
CREATE FUNCTION prune_audit(kept interval, most integer) RETURNS integer LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  ended record;
  deleted integer := 0;
  rows integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext(current_schema() || ' prune_audit')) THEN
    RETURN 0;
  END IF;
  FOR ended IN
    WITH oldest AS (
      SELECT id, coalesce(account_id, '') AS chain, at < now() - kept AS due
      FROM audit_log ORDER BY id LIMIT most)
    SELECT o.chain, max(o.id) AS last FROM oldest o
    WHERE o.due AND NOT EXISTS (
      SELECT FROM oldest k WHERE k.chain = o.chain AND k.id < o.id AND NOT k.due)
    GROUP BY o.chain ORDER BY o.chain
  LOOP
    UPDATE audit_chains SET anchor_id = ended.last,
      anchor_hash = (SELECT hash FROM audit_log WHERE id = ended.last)
      WHERE chain = ended.chain;
    DELETE FROM audit_log WHERE id <= ended.last
      AND account_id IS NOT DISTINCT FROM nullif(ended.chain, '');
    GET DIAGNOSTICS rows = ROW_COUNT;
    deleted := deleted + rows;
    DELETE FROM audit_chains WHERE chain = ended.chain AND chain <> '' AND head_id = anchor_id
      AND NOT EXISTS (SELECT FROM accounts WHERE id = ended.chain);
  END LOOP;
  RETURN deleted;
END $$;

-- Entries that exist already are chained in the order of writing.
DO $$
DECLARE
  entry audit_log;
BEGIN
  FOR entry IN SELECT * FROM audit_log ORDER BY id LOOP
    INSERT INTO audit_chains (chain) VALUES (coalesce(entry.account_id, '')) ON CONFLICT DO NOTHING;
    SELECT head_hash INTO entry.previous FROM audit_chains
      WHERE chain = coalesce(entry.account_id, '');
    entry.hash := sha256(convert_to(audit_content(entry), 'UTF8'));
    UPDATE audit_log SET previous = entry.previous, hash = entry.hash WHERE id = entry.id;
    UPDATE audit_chains SET head_id = entry.id, head_hash = entry.hash
      WHERE chain = coalesce(entry.account_id, '');
  END LOOP;
END $$;

CREATE INDEX audit_log_account_order ON audit_log (account_id, id);

ALTER TABLE api_keys ADD COLUMN pepper integer NOT NULL DEFAULT 1 CHECK (pepper BETWEEN 1 AND 255);
COMMENT ON COLUMN api_keys.pepper IS 'Version of the pepper that the hash was made under; a use of the key renews the hash under the newest';
COMMENT ON COLUMN webhook_secrets.sealed IS 'The secret under AES-256-GCM, sealed with a key derived from the pepper, which is not in the database; the first byte is the version of the pepper';

-- A hash that is renewed under a newer pepper belongs to the same key: access has not changed.
DROP TRIGGER api_keys_access ON api_keys;
CREATE TRIGGER api_keys_access
  AFTER DELETE OR UPDATE OF scopes, allow_cidrs, expires_at, revoked_at ON api_keys
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();
CREATE TRIGGER api_keys_hash AFTER UPDATE OF hash ON api_keys
  FOR EACH ROW WHEN (OLD.pepper = NEW.pepper) EXECUTE FUNCTION tell_access_change();

CREATE TABLE security_events (
  at timestamptz NOT NULL,
  process text NOT NULL,
  event text NOT NULL,
  network text NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (at, process, event, network)
);
COMMENT ON TABLE security_events IS 'Security events, counted in periods of five minutes; kept for 30 days';
COMMENT ON COLUMN security_events.at IS 'Start of the five minutes';
COMMENT ON COLUMN security_events.process IS 'Kind of process that counted: api or stream';
COMMENT ON COLUMN security_events.event IS 'Kind of event, as the label of pillole_security_events_total';
COMMENT ON COLUMN security_events.network IS 'Network of the client: an IPv4 address or an IPv6 /64; other = beyond the bound of networks';
COMMENT ON COLUMN security_events.count IS 'Number of events';
