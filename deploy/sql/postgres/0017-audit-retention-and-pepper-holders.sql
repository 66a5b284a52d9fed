-- Retention finds the chains that are due by their oldest entries, and cannot be used to delete younger
-- ones. Processes record which versions of the pepper they accept.

ALTER TABLE audit_chains ADD COLUMN oldest_at timestamptz;
COMMENT ON COLUMN audit_chains.oldest_at IS 'Time of the oldest remaining entry; null = none remains';
UPDATE audit_chains c SET oldest_at = o.at FROM (
  SELECT DISTINCT ON (account_id) coalesce(account_id, '') AS chain, at
  FROM audit_log ORDER BY account_id, id) o
  WHERE o.chain = c.chain;
CREATE INDEX audit_chains_oldest ON audit_chains (oldest_at);

CREATE OR REPLACE FUNCTION chain_audit() RETURNS trigger LANGUAGE plpgsql
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
  UPDATE audit_chains SET head_id = NEW.id, head_hash = NEW.hash,
    oldest_at = coalesce(oldest_at, NEW.at) WHERE chain = own;
  RETURN NEW;
END $$;

-- Deletes entries older than `kept`, at most `most`, and moves the anchors. Of each chain only the
-- oldest entries go, so an entry that is due waits for the ones before it; other chains do not wait.
-- The callers are processes, which must not be able to delete what happened lately: 366 days are kept
-- whatever they ask for. A chain that is being written to is left for the next call, so the function
-- never waits for a lock while it holds others.
CREATE OR REPLACE FUNCTION prune_audit(kept interval, most integer) RETURNS integer LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  before timestamptz := now() - greatest(kept, interval '366 days');
  own text;
  mine text;
  last bigint;
  rows integer;
  deleted integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext(current_schema() || ' prune_audit')) THEN
    RETURN 0;
  END IF;
  FOR own IN
    SELECT chain FROM audit_chains WHERE oldest_at < before ORDER BY oldest_at, chain LIMIT most
  LOOP
    EXIT WHEN deleted >= most;
    PERFORM FROM audit_chains WHERE chain = own FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    -- IS NOT DISTINCT FROM would not use the index.
    mine := CASE own WHEN '' THEN 'account_id IS NULL' ELSE format('account_id = %L', own) END;
    EXECUTE format('WITH oldest AS (
        SELECT id, at < $1 AS due FROM audit_log WHERE %s ORDER BY id LIMIT $2)
      SELECT max(id) FROM oldest WHERE id < coalesce(
        (SELECT min(id) FROM oldest WHERE NOT due), 9223372036854775807)', mine)
      INTO last USING before, most - deleted;
    CONTINUE WHEN last IS NULL;
    UPDATE audit_chains SET anchor_id = last,
      anchor_hash = (SELECT hash FROM audit_log WHERE id = last) WHERE chain = own;
    EXECUTE format('DELETE FROM audit_log WHERE %s AND id <= $1', mine) USING last;
    GET DIAGNOSTICS rows = ROW_COUNT;
    deleted := deleted + rows;
    EXECUTE format('UPDATE audit_chains SET oldest_at = (
      SELECT at FROM audit_log WHERE %s ORDER BY id LIMIT 1) WHERE chain = $1', mine) USING own;
    DELETE FROM audit_chains WHERE chain = own AND chain <> '' AND head_id = anchor_id
      AND NOT EXISTS (SELECT FROM accounts WHERE id = own);
  END LOOP;
  RETURN deleted;
END $$;

CREATE TABLE pepper_holders (
  process text PRIMARY KEY,
  versions integer[] NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE pepper_holders IS 'Versions of the pepper that each running process accepts; a row that is not renewed for a day is deleted';
COMMENT ON COLUMN pepper_holders.process IS 'Kind of process, host and process id, e.g. api desk-4 4711';
COMMENT ON COLUMN pepper_holders.versions IS 'Numbers of the versions in its KEY_PEPPER_FILE, newest first';
COMMENT ON COLUMN pepper_holders.seen_at IS 'When the process last said so';
