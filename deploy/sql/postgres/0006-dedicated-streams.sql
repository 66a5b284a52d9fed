-- Dedicated sockets: each row is a process of its own. A supervisor follows the table.

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
COMMENT ON COLUMN dedicated_streams.name IS 'ded_ and 12 random characters, the last part of its address; tells nothing and opens nothing';
COMMENT ON COLUMN dedicated_streams.account_id IS 'Whose keys open it';
COMMENT ON COLUMN dedicated_streams.label IS 'What its owner calls it';
COMMENT ON COLUMN dedicated_streams.port IS 'Port of its process, the same for its whole life';
COMMENT ON COLUMN dedicated_streams.created_at IS 'When it was made';
COMMENT ON COLUMN dedicated_streams.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN dedicated_streams.replaced_by IS 'The one that a rotation made in its place';
COMMENT ON COLUMN dedicated_streams.expires_at IS 'It ends then; null = never; set by a rotation';
COMMENT ON COLUMN dedicated_streams.removed_at IS 'It has no process since; null = it lives';

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
COMMENT ON TABLE dedicated_stream_states IS 'How the processes are, as the supervisor told last; nothing is decided by it';
COMMENT ON COLUMN dedicated_stream_states.name IS 'Which dedicated socket';
COMMENT ON COLUMN dedicated_stream_states.state IS 'starting, ready, failing = it ended and waits for its restart, stopped = the account may not have it now';
COMMENT ON COLUMN dedicated_stream_states.reason IS 'Why it is not ready, in one sentence; null = it is';
COMMENT ON COLUMN dedicated_stream_states.pid IS 'Its process on the machine of the supervisor; null = none';
COMMENT ON COLUMN dedicated_stream_states.since IS 'In this state since';
COMMENT ON COLUMN dedicated_stream_states.restarts IS 'Times that it was started again since its supervisor began';
COMMENT ON COLUMN dedicated_stream_states.connections IS 'Open sockets';
COMMENT ON COLUMN dedicated_stream_states.queue_bytes IS 'Bytes that wait for its readers, over all sockets';
COMMENT ON COLUMN dedicated_stream_states.queue_ms IS 'How long the oldest of them has waited';
COMMENT ON COLUMN dedicated_stream_states.lag_records IS 'Records of the log that it has not read yet; null = the log cannot be asked';
COMMENT ON COLUMN dedicated_stream_states.reported_at IS 'When this was told; an old time means that no supervisor runs';

CREATE FUNCTION tell_dedicated_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('dedicated_' || TG_TABLE_SCHEMA, '');
  RETURN NULL;
END $$;

CREATE TRIGGER dedicated_streams_change
  AFTER INSERT OR UPDATE OR DELETE ON dedicated_streams
  FOR EACH ROW EXECUTE FUNCTION tell_dedicated_change();
