-- How well the service ran, by hour, for the status page; and calls by hour, for usage.

CREATE TABLE latency_hours (
  hour timestamptz NOT NULL,
  channel text NOT NULL CHECK (channel IN ('stream', 'webhook')),
  counts bigint[] NOT NULL,
  PRIMARY KEY (hour, channel)
);
COMMENT ON TABLE latency_hours IS 'Pills by latency and hour, of all processes; each adds its counts about once a minute; kept for 400 days';
COMMENT ON COLUMN latency_hours.hour IS 'Start of the hour in which the counts were added';
COMMENT ON COLUMN latency_hours.channel IS 'stream = received to written to the first socket; webhook = received to the first attempt';
COMMENT ON COLUMN latency_hours.counts IS 'Pills by bucket of LATENCY_BUCKETS_S in the code; the last one has those beyond all bounds. Another list of buckets needs a migration';

CREATE TABLE availability_hours (
  hour timestamptz PRIMARY KEY,
  ok_s double precision NOT NULL,
  degraded_s double precision NOT NULL
);
COMMENT ON TABLE availability_hours IS 'Seconds by state of the service, summed over the API processes; kept for 400 days';
COMMENT ON COLUMN availability_hours.hour IS 'Start of the hour';
COMMENT ON COLUMN availability_hours.ok_s IS 'Seconds in which all parts worked';
COMMENT ON COLUMN availability_hours.degraded_s IS 'Seconds in which a part did not work';

CREATE TABLE service_incidents (
  id text PRIMARY KEY,
  component text NOT NULL,
  began_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  is_over boolean NOT NULL
);
CREATE INDEX service_incidents_began ON service_incidents (began_at);
COMMENT ON TABLE service_incidents IS 'Times in which an API process saw a part of the service fail; kept for 400 days';
COMMENT ON COLUMN service_incidents.id IS 'inc_ and 12 random characters';
COMMENT ON COLUMN service_incidents.component IS 'Part of the service, as in GET /api/status';
COMMENT ON COLUMN service_incidents.began_at IS 'When the part was first seen to fail';
COMMENT ON COLUMN service_incidents.seen_at IS 'When the part was last seen to fail';
COMMENT ON COLUMN service_incidents.is_over IS 'false = it goes on, or the process that saw it has ended';

CREATE TABLE usage_hours (
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  hour timestamptz NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (account_id, hour)
);
COMMENT ON TABLE usage_hours IS 'Calls of an account by hour, written about once a second beside usage_calls; kept for 32 days';
COMMENT ON COLUMN usage_hours.account_id IS 'Account that made the calls';
COMMENT ON COLUMN usage_hours.hour IS 'Start of the hour, by the clock of PostgreSQL when the calls were written';
COMMENT ON COLUMN usage_hours.calls IS 'Number of calls';
