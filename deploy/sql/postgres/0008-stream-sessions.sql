-- Open sockets of all stream processes, so that their owners can list and close them.

ALTER TABLE stream_tickets ADD COLUMN session_hash bytea;
COMMENT ON COLUMN stream_tickets.session_hash IS 'Session that requested the ticket, as in sessions: the socket ends with the session; null = a key requested it';

CREATE TABLE stream_processes (
  process text PRIMARY KEY,
  seen_at timestamptz NOT NULL
);
COMMENT ON TABLE stream_processes IS 'Running stream processes, one row each';
COMMENT ON COLUMN stream_processes.process IS 'Random name, new at every start of a process';
COMMENT ON COLUMN stream_processes.seen_at IS 'Time of the last heartbeat; a process without one for some seconds counts as dead';

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
COMMENT ON COLUMN stream_sessions.session IS 's_ and 12 hex digits, as in the welcome frame';
COMMENT ON COLUMN stream_sessions.process IS 'Process that holds the socket';
COMMENT ON COLUMN stream_sessions.account_id IS 'Account that owns the socket';
COMMENT ON COLUMN stream_sessions.session_hash IS 'Session that the socket''s ticket came from, as in sessions; null = opened with a key';
COMMENT ON COLUMN stream_sessions.hint IS 'Part of the key by which its owner recognises it: pil_live_…ab12; session = a browser''s ticket';
COMMENT ON COLUMN stream_sessions.address IS 'Network address of the client';
COMMENT ON COLUMN stream_sessions.encoding IS 'json or avro';
COMMENT ON COLUMN stream_sessions.opened_at IS 'When the socket was admitted';
COMMENT ON COLUMN stream_sessions.queue_ms IS 'How long the oldest unread frame had waited at the last report';
COMMENT ON COLUMN stream_sessions.queue_bytes IS 'Unread bytes at the last report';
COMMENT ON COLUMN stream_sessions.end_asked_at IS 'When the owner asked for the socket to be closed; its process closes it';
