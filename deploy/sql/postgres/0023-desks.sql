-- Desks: parts of an account with limits of their own, which hold the keys that belong to them.

CREATE TABLE desks (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  name text NOT NULL,
  calls_per_day integer CHECK (calls_per_day > 0),
  rate_per_s integer CHECK (rate_per_s > 0),
  rate_burst integer CHECK (rate_burst > 0),
  connections_max integer CHECK (connections_max >= 0),
  symbols text[],
  allow_cidrs text[] NOT NULL DEFAULT '{}',
  expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  removed_at timestamptz,
  CHECK ((rate_per_s IS NULL) = (rate_burst IS NULL))
);
CREATE UNIQUE INDEX desks_name ON desks (account_id, name) WHERE removed_at IS NULL;
COMMENT ON TABLE desks IS 'Parts of an account with limits of their own, within those of the account';
COMMENT ON COLUMN desks.id IS 'dsk_ and 12 random characters';
COMMENT ON COLUMN desks.account_id IS 'Account that the desk is part of';
COMMENT ON COLUMN desks.name IS 'Name in the path of the API; free again once the desk is removed';
COMMENT ON COLUMN desks.calls_per_day IS 'Calls per UTC day of all keys of the desk; null = the account''s';
COMMENT ON COLUMN desks.rate_per_s IS 'Calls per second of all keys of the desk, by process; null = the account''s';
COMMENT ON COLUMN desks.rate_burst IS 'Burst of all keys of the desk, by process; null = the account''s';
COMMENT ON COLUMN desks.connections_max IS 'Open sockets of all keys of the desk, over all processes; null = the account''s';
COMMENT ON COLUMN desks.symbols IS 'Symbols that keys of the desk may read; null = all';
COMMENT ON COLUMN desks.allow_cidrs IS 'Networks from which keys of the desk may be used; empty = all';
COMMENT ON COLUMN desks.expires_at IS 'Keys of the desk are refused from then on; null = never';
COMMENT ON COLUMN desks.created_at IS 'When the desk was created';
COMMENT ON COLUMN desks.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN desks.removed_at IS 'When the desk was removed, with its keys; null = not removed';

CREATE TRIGGER desks_access
  AFTER DELETE OR UPDATE ON desks
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();

ALTER TABLE api_keys ADD COLUMN desk_id text REFERENCES desks ON DELETE CASCADE;
CREATE INDEX api_keys_desk ON api_keys (desk_id) WHERE desk_id IS NOT NULL;
COMMENT ON COLUMN api_keys.desk_id IS 'Desk whose limits hold for the key; never changes; null = none';

ALTER TABLE stream_sessions ADD COLUMN desk_id text;
COMMENT ON COLUMN stream_sessions.desk_id IS 'Desk of the key that opened the socket; null = none';

CREATE TABLE desk_usage_days (
  desk_id text NOT NULL REFERENCES desks ON DELETE CASCADE,
  day date NOT NULL,
  used bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (desk_id, day)
);
COMMENT ON TABLE desk_usage_days IS 'Calls of a desk on a UTC day, exact over all its keys and all processes; kept for 13 months';
COMMENT ON COLUMN desk_usage_days.desk_id IS 'Desk whose keys made the calls';
COMMENT ON COLUMN desk_usage_days.day IS 'UTC day, as in usage_days';
COMMENT ON COLUMN desk_usage_days.used IS 'Calls, which usage_days counts too';

-- The same as before for items without a desk. Calls of a desk count for the desk and its account, in
-- one step: what one of them has no room for is granted by neither. The row of the account is locked
-- first. Callers of the former version pass no desks.
DROP FUNCTION take_calls(text[], integer[], integer[]);
CREATE FUNCTION take_calls(account_ids text[], calls integer[], limits integer[],
  desk_ids text[] DEFAULT NULL, desk_limits integer[] DEFAULT NULL)
RETURNS TABLE (item integer, granted integer, used bigint, day text, reset_s integer,
  desk_used bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  moment timestamptz := quota_now();
  today date := (moment AT TIME ZONE 'UTC')::date;
  midnight timestamptz := (today + 1)::timestamp AT TIME ZONE 'UTC';
  asked record;
  before bigint;
  desk_before bigint;
  given integer;
  percent integer;
BEGIN
  day := to_char(today, 'YYYY-MM-DD');
  reset_s := greatest(1, ceil(extract(epoch FROM midnight - moment)))::integer;
  FOR asked IN
    SELECT a.account, a.wanted, a.lim, a.desk, a.desk_lim, a.place
    FROM unnest(account_ids, calls, limits, desk_ids, desk_limits)
      WITH ORDINALITY AS a(account, wanted, lim, desk, desk_lim, place)
    ORDER BY a.account, a.wanted, a.desk
  LOOP
    SELECT u.used INTO before FROM usage_days u
      WHERE u.account_id = asked.account AND u.day = today FOR UPDATE;
    IF NOT FOUND THEN
      INSERT INTO usage_days (account_id, day)
        SELECT a.id, today FROM accounts a WHERE a.id = asked.account
        ON CONFLICT DO NOTHING;
      SELECT u.used INTO before FROM usage_days u
        WHERE u.account_id = asked.account AND u.day = today FOR UPDATE;
      CONTINUE WHEN NOT FOUND;
    END IF;
    desk_before := NULL;
    IF asked.desk IS NOT NULL THEN
      -- Only statements that hold the lock of the account write the rows of its desks.
      SELECT d.used INTO desk_before FROM desk_usage_days d
        WHERE d.desk_id = asked.desk AND d.day = today;
      IF NOT FOUND THEN
        INSERT INTO desk_usage_days (desk_id, day)
          SELECT d.id, today FROM desks d WHERE d.id = asked.desk;
        CONTINUE WHEN NOT FOUND;
        desk_before := 0;
      END IF;
    END IF;
    given := CASE
      WHEN asked.lim IS NULL THEN asked.wanted
      ELSE least(asked.wanted, greatest(asked.lim - before, 0))
    END;
    IF asked.desk_lim IS NOT NULL THEN
      given := least(given, greatest(asked.desk_lim - desk_before, 0));
    END IF;
    given := greatest(given, -before, -coalesce(desk_before, before));
    IF given <> 0 THEN
      UPDATE usage_days u SET used = before + given
        WHERE u.account_id = asked.account AND u.day = today;
      UPDATE desk_usage_days d SET used = desk_before + given
        WHERE d.desk_id = asked.desk AND d.day = today;
    END IF;
    IF given > 0 AND asked.lim IS NOT NULL THEN
      FOREACH percent IN ARRAY ARRAY[80, 95, 100] LOOP
        CONTINUE WHEN before * 100 >= percent::bigint * asked.lim
          OR (before + given) * 100 < percent::bigint * asked.lim;
        INSERT INTO account_events (account_id, type, dedupe, data) VALUES (
          asked.account, 'quota.warning', format('quota.warning/%s/%s', today, percent),
          jsonb_build_object('policy', 'daily', 'percent', percent, 'used', before + given,
            'limit', asked.lim,
            'resets_at', to_char(midnight AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
        ) ON CONFLICT DO NOTHING;
      END LOOP;
    END IF;
    item := asked.place;
    granted := given;
    used := before + given;
    desk_used := desk_before + given;
    RETURN NEXT;
  END LOOP;
END $$;
