-- Exports: files with the pills of a range, made in the background.

CREATE TABLE exports (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  created_by text NOT NULL,
  request jsonb NOT NULL,
  state text NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'running', 'done', 'failed', 'canceled')),
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  finished_at timestamptz,
  epoch text NOT NULL,
  position text NOT NULL,
  rows_estimated bigint NOT NULL,
  rows_done bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  sha256 text,
  receipt jsonb,
  problem text,
  attempts integer NOT NULL DEFAULT 0,
  owner text,
  owner_until timestamptz,
  file text
);
CREATE INDEX exports_account ON exports (account_id, created_at);
CREATE INDEX exports_open ON exports (created_at) WHERE state IN ('waiting', 'running');
COMMENT ON TABLE exports IS 'Files with the pills of a range; a row is deleted a day after its end, and its file with it';
COMMENT ON COLUMN exports.id IS 'exp_ and 12 random characters';
COMMENT ON COLUMN exports.account_id IS 'Account that owns the export';
COMMENT ON COLUMN exports.created_by IS 'key:<id> or user:<id>, as in the audit log';
COMMENT ON COLUMN exports.request IS 'What was requested: symbols, range, filter, format';
COMMENT ON COLUMN exports.state IS 'waiting and running become done, failed or canceled, which are final';
COMMENT ON COLUMN exports.created_at IS 'When it was requested';
COMMENT ON COLUMN exports.started_at IS 'When the latest attempt began';
COMMENT ON COLUMN exports.finished_at IS 'When it reached its final state; kept for 24 h from then on';
COMMENT ON COLUMN exports.epoch IS 'Epoch of the log when it was requested';
COMMENT ON COLUMN exports.position IS 'The export takes the pills of the log up to here into account';
COMMENT ON COLUMN exports.rows_estimated IS 'Pills at most, as counted before';
COMMENT ON COLUMN exports.rows_done IS 'Pills written so far';
COMMENT ON COLUMN exports.bytes IS 'Bytes written so far';
COMMENT ON COLUMN exports.sha256 IS 'SHA-256 of the file, hex; null until it is done';
COMMENT ON COLUMN exports.receipt IS 'Count, first and last cursor, and digest of the pills; null until it is done';
COMMENT ON COLUMN exports.problem IS 'Why it failed';
COMMENT ON COLUMN exports.attempts IS 'Processes that began to write it';
COMMENT ON COLUMN exports.owner IS 'The process that writes it';
COMMENT ON COLUMN exports.owner_until IS 'Another process may take it over from then on';
COMMENT ON COLUMN exports.file IS 'Name of the finished file in EXPORTS_FOLDER';

COMMENT ON COLUMN api_keys.scopes IS 'What the key may be used for: read, stream, exports, webhooks:read, webhooks:write, support';
