-- Webhooks: endpoints with their secrets, what waits to be delivered, and how far pills were handed over.

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
COMMENT ON TABLE webhook_endpoints IS 'Addresses of customers that events are posted to';
COMMENT ON COLUMN webhook_endpoints.id IS 'whe_ and 12 random characters';
COMMENT ON COLUMN webhook_endpoints.account_id IS 'Whose it is';
COMMENT ON COLUMN webhook_endpoints.url IS 'Where it is posted to; checked again at every attempt';
COMMENT ON COLUMN webhook_endpoints.description IS 'What its owner calls it';
COMMENT ON COLUMN webhook_endpoints.event_types IS 'What it is told of: pill.published, quota.warning, …';
COMMENT ON COLUMN webhook_endpoints.symbols IS 'Pills of these symbols alone; empty = all but test symbols';
COMMENT ON COLUMN webhook_endpoints.min_confidence IS 'Pills of at least this confidence; null = all';
COMMENT ON COLUMN webhook_endpoints.min_spread IS 'Pills of at least this gross spread in percent; null = all';
COMMENT ON COLUMN webhook_endpoints.max_spread IS 'Pills of at most this gross spread in percent; null = all';
COMMENT ON COLUMN webhook_endpoints.states IS 'Pills of these market states alone; empty = all';
COMMENT ON COLUMN webhook_endpoints.backfill IS 'Whether backfill pills are posted as well';
COMMENT ON COLUMN webhook_endpoints.headers IS 'Headers of its owner as JSON, sealed: they may hold credentials; null = none';
COMMENT ON COLUMN webhook_endpoints.rate_per_s IS 'Messages a second at most; what is above is joined, or waits';
COMMENT ON COLUMN webhook_endpoints.max_age_s IS 'A pill older than this is not posted any more, but listed as expired';
COMMENT ON COLUMN webhook_endpoints.status IS 'pending until the challenge was answered; disabled by its owner or by failures';
COMMENT ON COLUMN webhook_endpoints.disabled_reason IS 'Why it is disabled: owner, failing, gone; null = it is not';
COMMENT ON COLUMN webhook_endpoints.challenge IS 'What an answer to endpoint.test must contain to enable it; renewed with the URL';
COMMENT ON COLUMN webhook_endpoints.failing_since IS 'First failure after the last success; null = the last attempt succeeded';
COMMENT ON COLUMN webhook_endpoints.resting_until IS 'Circuit breaker or Retry-After: no attempt before; null = it is closed';
COMMENT ON COLUMN webhook_endpoints.backlog_full_since IS 'Receive time of the first pill that was not kept, because too much waited; null = all is kept';
COMMENT ON COLUMN webhook_endpoints.created_at IS 'When it was made: pills of before are not posted';
COMMENT ON COLUMN webhook_endpoints.updated_at IS 'Last change by its owner';

-- What dispatchers hold in memory of an account is void with any of these, as its access is.
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
COMMENT ON TABLE webhook_secrets IS 'Secrets that messages are signed with: during a rotation several';
COMMENT ON COLUMN webhook_secrets.id IS 'Order of making: the newest signs first';
COMMENT ON COLUMN webhook_secrets.endpoint_id IS 'Whose messages it signs';
COMMENT ON COLUMN webhook_secrets.account_id IS 'Whose it is';
COMMENT ON COLUMN webhook_secrets.sealed IS 'The secret under AES-256-GCM; the key comes of the pepper, which is not in the database';
COMMENT ON COLUMN webhook_secrets.created_at IS 'When it was made';
COMMENT ON COLUMN webhook_secrets.expires_at IS 'It signs until then; null = it is the one in force; set by a rotation';

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
COMMENT ON TABLE webhook_deliveries IS 'Messages that wait for an attempt, and those that were given up: kept 30 days, to be recovered. Delivered ones are deleted; the log of attempts in ClickHouse has them';
COMMENT ON COLUMN webhook_deliveries.id IS 'Order of writing';
COMMENT ON COLUMN webhook_deliveries.endpoint_id IS 'Where it goes';
COMMENT ON COLUMN webhook_deliveries.message_id IS 'webhook-id: the same at every attempt';
COMMENT ON COLUMN webhook_deliveries.event_type IS 'As in the body';
COMMENT ON COLUMN webhook_deliveries.body IS 'JSON as it is posted, byte for byte';
COMMENT ON COLUMN webhook_deliveries.bytes IS 'Bytes of the body';
COMMENT ON COLUMN webhook_deliveries.pills IS 'How many pills it carries; 0 = another event';
COMMENT ON COLUMN webhook_deliveries.occurred_at IS 'Receive time of its oldest pill, or time of the event: max_age_s counts from here';
COMMENT ON COLUMN webhook_deliveries.status IS 'waiting; failed = all attempts were used; expired = too old for its endpoint';
COMMENT ON COLUMN webhook_deliveries.attempts IS 'Attempts that were made';
COMMENT ON COLUMN webhook_deliveries.next_at IS 'It is attempted from then on; while an attempt is on its way, when another process may try';
COMMENT ON COLUMN webhook_deliveries.last_status IS 'HTTP status of the last attempt; null = none came';
COMMENT ON COLUMN webhook_deliveries.last_reason IS 'What was wrong with the last attempt, one word';
COMMENT ON COLUMN webhook_deliveries.created_at IS 'When it was kept here';
COMMENT ON COLUMN webhook_deliveries.settled_at IS 'When it was given up; null = it waits';

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
COMMENT ON TABLE webhook_positions IS 'How far the pills of each partition were handed over to webhooks: the outbox of first attempts is the log';
COMMENT ON COLUMN webhook_positions.epoch IS 'Epoch of the pills topic';
COMMENT ON COLUMN webhook_positions.partition IS 'Partition of the pills topic';
COMMENT ON COLUMN webhook_positions.owner IS 'Dispatcher that reads it; what another one writes is refused';
COMMENT ON COLUMN webhook_positions.next_offset IS 'All before it is delivered, or kept in webhook_deliveries';
COMMENT ON COLUMN webhook_positions.tried_below IS 'No pill at or after it was attempted by itself: after a crash those before are sent one by one again, with the same ids';
COMMENT ON COLUMN webhook_positions.snapshot_offset IS 'The state of symbols was kept just before this offset; null = never';
COMMENT ON COLUMN webhook_positions.snapshot IS 'That state: what prev and late need, compressed JSON';

CREATE TABLE webhook_joined (
  epoch text NOT NULL,
  partition integer NOT NULL,
  endpoint_id text NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  first_offset bigint NOT NULL,
  last_offset bigint NOT NULL,
  PRIMARY KEY (epoch, partition, endpoint_id, first_offset)
);
COMMENT ON TABLE webhook_joined IS 'Pills past next_offset that are kept in webhook_deliveries, or were: a restart leaves them out';
COMMENT ON COLUMN webhook_joined.epoch IS 'Epoch of the pills topic';
COMMENT ON COLUMN webhook_joined.partition IS 'Partition of the pills topic';
COMMENT ON COLUMN webhook_joined.endpoint_id IS 'Whose pills';
COMMENT ON COLUMN webhook_joined.first_offset IS 'Its pills from here';
COMMENT ON COLUMN webhook_joined.last_offset IS 'to here, both included';

CREATE TABLE webhook_workers (
  worker text PRIMARY KEY,
  seen_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE webhook_workers IS 'Workers of the queue of deliveries that live: what a dead one held is freed by another';
COMMENT ON COLUMN webhook_workers.worker IS 'As the queue names it';
COMMENT ON COLUMN webhook_workers.seen_at IS 'Last sign of life';

-- Has the deliveries of endpoints drained when the first of them is due, but not before `earliest`.
-- An endpoint whose challenge is not answered gets tests alone. One job an endpoint, in a queue of its
-- own: two never drain one endpoint side by side. The queue's schema stands beside ours.
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

-- Events of accounts go by webhook as well as by mail.
ALTER TABLE account_events ADD COLUMN posted_at timestamptz;
UPDATE account_events SET posted_at = now();
CREATE INDEX account_events_unposted ON account_events (id) WHERE posted_at IS NULL;
COMMENT ON COLUMN account_events.posted_at IS 'When it was handed to the webhooks of the account; null = not yet';
