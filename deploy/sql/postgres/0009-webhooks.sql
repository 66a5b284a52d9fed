-- Webhooks: endpoints and their secrets, waiting messages, and how far pills were handed over.

CREATE TABLE webhook_endpoints (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  url text NOT NULL,
  description text NOT NULL DEFAULT '',
  event_types text[] NOT NULL,
  symbols text[] NOT NULL DEFAULT '{}',
  min_confidence double precision,
  min_spread double precision,
  max_spread double precision,
  states text[] NOT NULL DEFAULT '{}',
  backfill boolean NOT NULL DEFAULT false,
  headers bytea,
  rate_per_s integer NOT NULL CHECK (rate_per_s > 0),
  max_age_s integer NOT NULL CHECK (max_age_s > 0),
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'enabled', 'disabled')),
  disabled_reason text,
  challenge text NOT NULL,
  failing_since timestamptz,
  resting_until timestamptz,
  backlog_full_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, created_at);
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since)
  WHERE failing_since IS NOT NULL;
COMMENT ON TABLE webhook_endpoints IS 'URLs of customers to which events are posted';
COMMENT ON COLUMN webhook_endpoints.id IS 'whe_ and 12 random characters';
COMMENT ON COLUMN webhook_endpoints.account_id IS 'Account that owns the endpoint';
COMMENT ON COLUMN webhook_endpoints.url IS 'URL to post to; checked again at every attempt';
COMMENT ON COLUMN webhook_endpoints.description IS 'Description by the owner';
COMMENT ON COLUMN webhook_endpoints.event_types IS 'Event types that the endpoint receives: pill.published, quota.warning, …';
COMMENT ON COLUMN webhook_endpoints.symbols IS 'Only pills of these symbols; empty = all except test symbols';
COMMENT ON COLUMN webhook_endpoints.min_confidence IS 'Only pills of at least this confidence; null = all';
COMMENT ON COLUMN webhook_endpoints.min_spread IS 'Only pills of at least this gross spread in percent; null = all';
COMMENT ON COLUMN webhook_endpoints.max_spread IS 'Only pills of at most this gross spread in percent; null = all';
COMMENT ON COLUMN webhook_endpoints.states IS 'Only pills of these market states; empty = all';
COMMENT ON COLUMN webhook_endpoints.backfill IS 'Whether backfill pills are posted too';
COMMENT ON COLUMN webhook_endpoints.headers IS 'The owner''s headers as JSON, sealed because they may hold credentials; null = none';
COMMENT ON COLUMN webhook_endpoints.rate_per_s IS 'Maximum messages per second; further pills are joined, or wait';
COMMENT ON COLUMN webhook_endpoints.max_age_s IS 'A pill older than this is no longer posted, but listed as expired';
COMMENT ON COLUMN webhook_endpoints.status IS 'pending until the challenge is answered; enabled; disabled by the owner or by failures';
COMMENT ON COLUMN webhook_endpoints.disabled_reason IS 'Why the endpoint is disabled: owner, failing, gone; null = not disabled';
COMMENT ON COLUMN webhook_endpoints.challenge IS 'Text that an answer to endpoint.test must contain to enable the endpoint; renewed with the URL';
COMMENT ON COLUMN webhook_endpoints.failing_since IS 'First failure after the last success; null = the last attempt succeeded';
COMMENT ON COLUMN webhook_endpoints.resting_until IS 'No attempt before this time, by the circuit breaker or Retry-After; null = no pause';
COMMENT ON COLUMN webhook_endpoints.backlog_full_since IS 'Receive time of the first pill that was not stored because too many messages waited; null = all are stored';
COMMENT ON COLUMN webhook_endpoints.created_at IS 'When the endpoint was created; earlier pills are not posted';
COMMENT ON COLUMN webhook_endpoints.updated_at IS 'Last change by its owner';

-- Like a change of access, each of these changes invalidates what dispatchers cache of an account.
CREATE TRIGGER webhook_endpoints_change
  AFTER INSERT OR DELETE OR UPDATE OF url, event_types, symbols, min_confidence, min_spread,
    max_spread, states, backfill, headers, rate_per_s, max_age_s, status, challenge
  ON webhook_endpoints
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();

CREATE TABLE webhook_secrets (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  endpoint_id text NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz
);
CREATE INDEX webhook_secrets_endpoint ON webhook_secrets (endpoint_id, id);
CREATE INDEX webhook_secrets_account ON webhook_secrets (account_id);
CREATE TRIGGER webhook_secrets_change
  AFTER INSERT OR DELETE OR UPDATE ON webhook_secrets
  FOR EACH ROW EXECUTE FUNCTION tell_access_change();
COMMENT ON TABLE webhook_secrets IS 'Secrets that sign messages; several during a rotation';
COMMENT ON COLUMN webhook_secrets.id IS 'Order of creation: the newest signs first';
COMMENT ON COLUMN webhook_secrets.endpoint_id IS 'Endpoint whose messages the secret signs';
COMMENT ON COLUMN webhook_secrets.account_id IS 'Account that owns the endpoint';
COMMENT ON COLUMN webhook_secrets.sealed IS 'The secret under AES-256-GCM; the key is derived from the pepper, which is not in the database';
COMMENT ON COLUMN webhook_secrets.created_at IS 'When the secret was created';
COMMENT ON COLUMN webhook_secrets.expires_at IS 'The secret signs until then; null = the current secret; set by a rotation';

CREATE TABLE webhook_deliveries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  endpoint_id text NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  message_id text NOT NULL,
  event_type text NOT NULL,
  body text NOT NULL,
  bytes integer GENERATED ALWAYS AS (octet_length(body)) STORED,
  pills integer NOT NULL DEFAULT 0,
  occurred_at timestamptz NOT NULL,
  status text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'failed', 'expired')),
  attempts integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL,
  last_status integer,
  last_reason text,
  created_at timestamptz NOT NULL DEFAULT now(),
  settled_at timestamptz,
  UNIQUE (endpoint_id, message_id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_at) INCLUDE (bytes)
  WHERE status = 'waiting';
CREATE INDEX webhook_deliveries_tests ON webhook_deliveries (endpoint_id, next_at)
  WHERE status = 'waiting' AND event_type = 'endpoint.test';
CREATE INDEX webhook_deliveries_order ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_next ON webhook_deliveries (next_at) WHERE status = 'waiting';
CREATE INDEX webhook_deliveries_settled ON webhook_deliveries (settled_at)
  WHERE status <> 'waiting';
COMMENT ON TABLE webhook_deliveries IS 'Messages that wait for an attempt, and given-up messages, which can be recovered for 30 days. Delivered messages are deleted; ClickHouse has the log of attempts';
COMMENT ON COLUMN webhook_deliveries.id IS 'Order of writing';
COMMENT ON COLUMN webhook_deliveries.endpoint_id IS 'Endpoint to post to';
COMMENT ON COLUMN webhook_deliveries.message_id IS 'webhook-id: the same at every attempt';
COMMENT ON COLUMN webhook_deliveries.event_type IS 'Event type, as in the body';
COMMENT ON COLUMN webhook_deliveries.body IS 'JSON as posted, byte for byte';
COMMENT ON COLUMN webhook_deliveries.bytes IS 'Size of the body in bytes';
COMMENT ON COLUMN webhook_deliveries.pills IS 'Number of pills in the message; 0 = another event';
COMMENT ON COLUMN webhook_deliveries.occurred_at IS 'Receive time of the oldest pill, or time of the event: max_age_s counts from here';
COMMENT ON COLUMN webhook_deliveries.status IS 'waiting; failed = all attempts were used; expired = too old for the endpoint';
COMMENT ON COLUMN webhook_deliveries.attempts IS 'Number of attempts so far';
COMMENT ON COLUMN webhook_deliveries.next_at IS 'Time of the next attempt; during an attempt, when another process may try';
COMMENT ON COLUMN webhook_deliveries.last_status IS 'HTTP status of the last attempt; null = no response';
COMMENT ON COLUMN webhook_deliveries.last_reason IS 'Why the last attempt failed, as one word';
COMMENT ON COLUMN webhook_deliveries.created_at IS 'When the row was written';
COMMENT ON COLUMN webhook_deliveries.settled_at IS 'When the message was given up; null = waiting';

CREATE TABLE webhook_positions (
  epoch text NOT NULL,
  partition integer NOT NULL,
  owner text NOT NULL,
  next_offset bigint NOT NULL,
  tried_below bigint NOT NULL,
  snapshot_offset bigint,
  snapshot bytea,
  PRIMARY KEY (epoch, partition)
);
COMMENT ON TABLE webhook_positions IS 'How far the pills of each partition are handed over to webhooks: the log is the outbox of first attempts';
COMMENT ON COLUMN webhook_positions.epoch IS 'Epoch of the pills topic';
COMMENT ON COLUMN webhook_positions.partition IS 'Partition of the pills topic';
COMMENT ON COLUMN webhook_positions.owner IS 'Dispatcher that reads the partition; writes of other dispatchers are refused';
COMMENT ON COLUMN webhook_positions.next_offset IS 'All pills before this offset are delivered, or stored in webhook_deliveries';
COMMENT ON COLUMN webhook_positions.tried_below IS 'No pill at or after this offset was attempted singly: after a crash, the pills before it are sent singly again, with the same ids';
COMMENT ON COLUMN webhook_positions.snapshot_offset IS 'The stored state of the symbols is that just before this offset; null = none is stored';
COMMENT ON COLUMN webhook_positions.snapshot IS 'State of the symbols, needed to decide prev and late, as compressed JSON';

CREATE TABLE webhook_joined (
  epoch text NOT NULL,
  partition integer NOT NULL,
  endpoint_id text NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  first_offset bigint NOT NULL,
  last_offset bigint NOT NULL,
  PRIMARY KEY (epoch, partition, endpoint_id, first_offset)
);
COMMENT ON TABLE webhook_joined IS 'Ranges of pills past next_offset that are, or were, stored in webhook_deliveries: a restarted dispatcher skips them';
COMMENT ON COLUMN webhook_joined.epoch IS 'Epoch of the pills topic';
COMMENT ON COLUMN webhook_joined.partition IS 'Partition of the pills topic';
COMMENT ON COLUMN webhook_joined.endpoint_id IS 'Endpoint that the pills were joined for';
COMMENT ON COLUMN webhook_joined.first_offset IS 'First offset of the range';
COMMENT ON COLUMN webhook_joined.last_offset IS 'Last offset of the range, included';

CREATE TABLE webhook_workers (
  worker text PRIMARY KEY,
  seen_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE webhook_workers IS 'Live workers of the delivery queue; other workers free the jobs of a dead worker';
COMMENT ON COLUMN webhook_workers.worker IS 'Name of the worker in the queue';
COMMENT ON COLUMN webhook_workers.seen_at IS 'Time of the last heartbeat';

-- Schedules a job per endpoint that drains its deliveries when the first one is due, but not before
-- `earliest`. A pending endpoint gets only tests. Each endpoint has a job key and a queue of its own,
-- so two jobs never drain one endpoint at the same time. The queue's schema stands beside ours.
CREATE FUNCTION wake_webhook_endpoints(endpoints text[], earliest timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  woken record;
BEGIN
  FOR woken IN
    SELECT e.id, greatest(d.next_at, e.resting_until, earliest) AS due
    FROM webhook_endpoints e CROSS JOIN LATERAL (
      (SELECT next_at FROM webhook_deliveries
       WHERE e.status <> 'pending' AND endpoint_id = e.id AND status = 'waiting'
       ORDER BY next_at LIMIT 1)
      UNION ALL
      (SELECT next_at FROM webhook_deliveries
       WHERE e.status = 'pending' AND endpoint_id = e.id AND status = 'waiting'
         AND event_type = 'endpoint.test'
       ORDER BY next_at LIMIT 1)
    ) d
    WHERE e.id = ANY (endpoints) ORDER BY e.id
  LOOP
    EXECUTE format('SELECT FROM %I.add_job($1, $2, queue_name => $3, run_at => $4, job_key => $3)',
      current_schema() || '_jobs')
      USING 'drain', json_build_object('endpoint', woken.id), 'drain/' || woken.id, woken.due;
  END LOOP;
END $$;

-- Account events are sent by webhook as well as by mail.
ALTER TABLE account_events ADD COLUMN posted_at timestamptz;
UPDATE account_events SET posted_at = now();
CREATE INDEX account_events_unposted ON account_events (id) WHERE posted_at IS NULL;
COMMENT ON COLUMN account_events.posted_at IS 'When the event was handed to the account''s webhooks; null = not yet';
