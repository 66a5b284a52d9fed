-- Sockets that are open, so that their owner can list and close them, over all stream processes.

ALTER TABLE stream_tickets ADD COLUMN session_hash bytea;
COMMENT ON COLUMN stream_tickets.session_hash IS 'The sign-in that asked for it, as in sessions; null = a key did. The socket ends with it';

CREATE TABLE stream_processes (
  process text PRIMARY KEY,
  seen_at timestamptz NOT NULL
);
COMMENT ON TABLE stream_processes IS 'Stream processes that run, one row each';
COMMENT ON COLUMN stream_processes.process IS 'Random name of one life of a process';
COMMENT ON COLUMN stream_processes.seen_at IS 'When it wrote last; what is older than some seconds is dead';

CREATE TABLE stream_sessions (
  session text PRIMARY KEY,
  process text NOT NULL REFERENCES stream_processes ON DELETE CASCADE,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  session_hash bytea,
  hint text NOT NULL,
  address text NOT NULL,
  encoding text NOT NULL,
  opened_at timestamptz NOT NULL,
  queue_ms integer NOT NULL,
  queue_bytes bigint NOT NULL,
  end_asked_at timestamptz
);
CREATE INDEX stream_sessions_account ON stream_sessions (account_id, opened_at);
CREATE INDEX stream_sessions_process ON stream_sessions (process);
COMMENT ON TABLE stream_sessions IS 'Open sockets of customers';
COMMENT ON COLUMN stream_sessions.session IS 's_ and 12 hex digits, as welcome tells it';
COMMENT ON COLUMN stream_sessions.process IS 'The process that holds it';
COMMENT ON COLUMN stream_sessions.account_id IS 'Whose it is';
COMMENT ON COLUMN stream_sessions.session_hash IS 'The sign-in its ticket came from, as in sessions; null = it came with a key';
COMMENT ON COLUMN stream_sessions.hint IS 'Enough to recognise its key: pil_live_…ab12; session = a browser''s ticket';
COMMENT ON COLUMN stream_sessions.address IS 'Where it comes from';
COMMENT ON COLUMN stream_sessions.encoding IS 'json or avro';
COMMENT ON COLUMN stream_sessions.opened_at IS 'When it was let in';
COMMENT ON COLUMN stream_sessions.queue_ms IS 'How long its oldest unread frame waited when that was written last';
COMMENT ON COLUMN stream_sessions.queue_bytes IS 'What waited unread then';
COMMENT ON COLUMN stream_sessions.end_asked_at IS 'Its owner wants it closed since then; the process does it';
