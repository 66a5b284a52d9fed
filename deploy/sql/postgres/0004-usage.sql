-- Calls per UTC day: the exact count that decides quotas, and its parts by key and endpoint.

CREATE TABLE usage_days (
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  day date NOT NULL,
  used bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day)
);
COMMENT ON TABLE usage_days IS 'Calls of an account on a UTC day, exact over all keys and processes; kept for 13 months';
COMMENT ON COLUMN usage_days.account_id IS 'Account that made the calls';
COMMENT ON COLUMN usage_days.day IS 'UTC day, by the clock of PostgreSQL';
COMMENT ON COLUMN usage_days.used IS 'Calls that passed the checks of key, tier and limits, without those given back after a 5xx';

CREATE TABLE usage_calls (
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  day date NOT NULL,
  key_id text NOT NULL,
  endpoint text NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (account_id, day, key_id, endpoint)
);
COMMENT ON TABLE usage_calls IS 'The same calls by key and endpoint, written about once a second; kept for 13 months';
COMMENT ON COLUMN usage_calls.account_id IS 'Account that made the calls';
COMMENT ON COLUMN usage_calls.day IS 'UTC day';
COMMENT ON COLUMN usage_calls.key_id IS 'Key of the calls';
COMMENT ON COLUMN usage_calls.endpoint IS 'Method and path pattern';
COMMENT ON COLUMN usage_calls.calls IS 'Number of calls';

-- The clock of all quotas, a function so that a test can simulate midnight.
CREATE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Takes calls for several accounts at once and returns the result of each item, by its index in the
-- arrays. Rows are locked in account order, so that two statements never deadlock; within an account,
-- returned calls come first. limits[i] null = count without a limit; calls[i] < 0 returns calls, 0
-- only reads. A deleted account has no result. At 80, 95 and 100 % of a limit an event is raised, each
-- once a day.
CREATE FUNCTION take_calls(account_ids text[], calls integer[], limits integer[])
RETURNS TABLE (item integer, granted integer, used bigint, day text, reset_s integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  moment timestamptz := quota_now();
  today date := (moment AT TIME ZONE 'UTC')::date;
  midnight timestamptz := (today + 1)::timestamp AT TIME ZONE 'UTC';
  asked record;
  before bigint;
  given integer;
  percent integer;
BEGIN
  day := to_char(today, 'YYYY-MM-DD');
  reset_s := greatest(1, ceil(extract(epoch FROM midnight - moment)))::integer;
  FOR asked IN
    SELECT a.account, a.wanted, a.lim, a.place
    FROM unnest(account_ids, calls, limits) WITH ORDINALITY AS a(account, wanted, lim, place)
    ORDER BY a.account, a.wanted
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
    given := CASE
      WHEN asked.lim IS NULL THEN asked.wanted
      ELSE least(asked.wanted, greatest(asked.lim - before, 0))
    END;
    given := greatest(given, -before);
    IF given <> 0 THEN
      UPDATE usage_days u SET used = before + given
        WHERE u.account_id = asked.account AND u.day = today;
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
    RETURN NEXT;
  END LOOP;
END $$;
