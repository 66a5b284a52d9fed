-- Dedicated sockets: a supervisor runs one process for each row.

CREATE TABLE dedicated_streams (
  name text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  label text NOT NULL,
  port integer NOT NULL CHECK (port BETWEEN 1 AND 65535),
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  replaced_by text REFERENCES dedicated_streams ON DELETE SET NULL,
  expires_at timestamptz,
  removed_at timestamptz
);
CREATE UNIQUE INDEX dedicated_streams_port ON dedicated_streams (port) WHERE removed_at IS NULL;
CREATE INDEX dedicated_streams_account ON dedicated_streams (account_id, created_at);
CREATE INDEX dedicated_streams_removed ON dedicated_streams (removed_at) WHERE removed_at IS NOT NULL;
COMMENT ON TABLE dedicated_streams IS 'Dedicated sockets of Institutional accounts; removed ones are kept for 30 days';
COMMENT ON COLUMN dedicated_streams.name IS 'ded_ and 12 random characters, the last part of the socket''s address; reveals nothing and grants nothing';
COMMENT ON COLUMN dedicated_streams.account_id IS 'Account whose keys open the socket';
COMMENT ON COLUMN dedicated_streams.label IS 'Name that its owner gave the socket';
COMMENT ON COLUMN dedicated_streams.port IS 'Port of the socket''s process, the same for its whole life';
COMMENT ON COLUMN dedicated_streams.created_at IS 'When the socket was created';
COMMENT ON COLUMN dedicated_streams.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN dedicated_streams.replaced_by IS 'Dedicated socket that a rotation created in its place';
COMMENT ON COLUMN dedicated_streams.expires_at IS 'When the socket ends; null = never; set by a rotation';
COMMENT ON COLUMN dedicated_streams.removed_at IS 'When the socket was removed and its process ended; null = in use';

CREATE TABLE dedicated_stream_states (
  name text PRIMARY KEY REFERENCES dedicated_streams ON DELETE CASCADE,
  state text NOT NULL CHECK (state IN ('starting', 'ready', 'failing', 'stopped')),
  reason text,
  pid integer,
  since timestamptz NOT NULL,
  restarts integer NOT NULL,
  connections integer NOT NULL,
  queue_bytes bigint NOT NULL,
  queue_ms integer NOT NULL,
  lag_records bigint,
  reported_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE dedicated_stream_states IS 'States of the processes, as last reported by the supervisor; no decision depends on them';
COMMENT ON COLUMN dedicated_stream_states.name IS 'Name of the dedicated socket';
COMMENT ON COLUMN dedicated_stream_states.state IS 'starting; ready; failing = the process ended and waits for its restart; stopped = the account is not entitled to the socket now';
COMMENT ON COLUMN dedicated_stream_states.reason IS 'Why the socket is not ready, in one sentence; null = ready';
COMMENT ON COLUMN dedicated_stream_states.pid IS 'Pid of the process on the supervisor''s machine; null = no process';
COMMENT ON COLUMN dedicated_stream_states.since IS 'Time of the last change of state';
COMMENT ON COLUMN dedicated_stream_states.restarts IS 'Number of restarts since the supervisor started';
COMMENT ON COLUMN dedicated_stream_states.connections IS 'Number of open connections';
COMMENT ON COLUMN dedicated_stream_states.queue_bytes IS 'Unread bytes, over all connections';
COMMENT ON COLUMN dedicated_stream_states.queue_ms IS 'How long the oldest unread byte has waited';
COMMENT ON COLUMN dedicated_stream_states.lag_records IS 'Records of the log that the process has not read yet; null = the log does not answer';
COMMENT ON COLUMN dedicated_stream_states.reported_at IS 'Time of the report; an old time means that no supervisor runs';

CREATE FUNCTION tell_dedicated_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('dedicated_' || TG_TABLE_SCHEMA, '');
  RETURN NULL;
END $$;

CREATE TRIGGER dedicated_streams_change
  AFTER INSERT OR UPDATE OR DELETE ON dedicated_streams
  FOR EACH ROW EXECUTE FUNCTION tell_dedicated_change();
