-- Destinations of Institutional accounts: where pills are written to, beside streams and webhooks.

CREATE TABLE destinations (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  name text NOT NULL,
  type text NOT NULL,
  settings jsonb NOT NULL,
  filter jsonb NOT NULL,
  sealed bytea NOT NULL,
  credential_version integer NOT NULL DEFAULT 1,
  credential_changed_at timestamptz NOT NULL DEFAULT now(),
  version integer NOT NULL DEFAULT 1,
  paused_by text CHECK (paused_by IN ('owner', 'entitlement')),
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  failing_since timestamptz,
  last_delivered_at timestamptz,
  fault_since timestamptz,
  owner text,
  owner_until timestamptz
);
CREATE INDEX destinations_account ON destinations (account_id, created_at);
COMMENT ON TABLE destinations IS 'Where pills of an account are written to: buckets and other systems of the customer';
COMMENT ON COLUMN destinations.id IS 'dst_ and 12 random characters';
COMMENT ON COLUMN destinations.account_id IS 'Account that owns the destination';
COMMENT ON COLUMN destinations.name IS 'Name that its owner gave the destination';
COMMENT ON COLUMN destinations.type IS 'Name of its type, which never changes, e.g. s3';
COMMENT ON COLUMN destinations.settings IS 'Settings by the schema of the type, without credentials';
COMMENT ON COLUMN destinations.filter IS 'Conditions that a pill must meet, as of webhook endpoints';
COMMENT ON COLUMN destinations.sealed IS 'Credentials by the schema of the type, as JSON, sealed for the destination (AES-256-GCM)';
COMMENT ON COLUMN destinations.credential_version IS 'Rises with each change of the credentials';
COMMENT ON COLUMN destinations.credential_changed_at IS 'When the credentials were last changed';
COMMENT ON COLUMN destinations.version IS 'Rises with each change of settings, filter or credentials, so that a running process notices';
COMMENT ON COLUMN destinations.paused_by IS 'owner; entitlement = the tier ended, so only its owner resumes it, from then on; null = not paused';
COMMENT ON COLUMN destinations.created_at IS 'When the destination was created';
COMMENT ON COLUMN destinations.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN destinations.updated_at IS 'When its owner last changed it';
COMMENT ON COLUMN destinations.failing_since IS 'First failure of the receiving system after its last success; null = the last attempt succeeded';
COMMENT ON COLUMN destinations.last_delivered_at IS 'When a delivery last succeeded';
COMMENT ON COLUMN destinations.fault_since IS 'Since when the platform itself cannot deliver, which is no failure of the receiving system; null = no fault';
COMMENT ON COLUMN destinations.owner IS 'Run of a process that delivers; what another one writes has no effect';
COMMENT ON COLUMN destinations.owner_until IS 'Another process may take the destination over from then on';

CREATE TABLE destination_positions (
  destination_id text NOT NULL REFERENCES destinations ON DELETE CASCADE,
  epoch text NOT NULL,
  partition integer NOT NULL,
  next_offset bigint NOT NULL,
  published_end bigint,
  plan_end bigint,
  plan_filter jsonb,
  snapshot_offset bigint NOT NULL,
  snapshot bytea NOT NULL,
  delivered_until timestamptz,
  PRIMARY KEY (destination_id, epoch, partition)
);
COMMENT ON TABLE destination_positions IS 'How far each partition of the log is delivered to a destination';
COMMENT ON COLUMN destination_positions.destination_id IS 'Destination';
COMMENT ON COLUMN destination_positions.epoch IS 'Epoch of the log';
COMMENT ON COLUMN destination_positions.partition IS 'Partition of the log';
COMMENT ON COLUMN destination_positions.next_offset IS 'All pills before this offset are delivered, or excluded by the filter';
COMMENT ON COLUMN destination_positions.published_end IS 'Where the last piece with pills ended; null = none yet';
COMMENT ON COLUMN destination_positions.plan_end IS 'Where the piece that is being delivered ends, written before it; null = none';
COMMENT ON COLUMN destination_positions.plan_filter IS 'Filter of that piece, so that a repeat has the same pills';
COMMENT ON COLUMN destination_positions.snapshot_offset IS 'Offset that the snapshot precedes; judging continues there';
COMMENT ON COLUMN destination_positions.snapshot IS 'State of the symbols of the partition, gzipped JSON';
COMMENT ON COLUMN destination_positions.delivered_until IS 'Receive time of the newest pill that was delivered';

CREATE TABLE destination_attempts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  destination_id text NOT NULL REFERENCES destinations ON DELETE CASCADE,
  at timestamptz NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('delivered', 'failed')),
  reason text,
  status integer,
  detail text,
  attempts integer NOT NULL,
  pills bigint NOT NULL,
  bytes bigint NOT NULL,
  latency_ms integer NOT NULL
);
CREATE INDEX destination_attempts_page ON destination_attempts (destination_id, id DESC);
COMMENT ON TABLE destination_attempts IS 'Attempts to deliver, equal ones of 5 s in one row; the newest 10,000 rows of a destination, at most 30 days old';
COMMENT ON COLUMN destination_attempts.id IS 'Order of writing';
COMMENT ON COLUMN destination_attempts.destination_id IS 'Destination';
COMMENT ON COLUMN destination_attempts.at IS 'When the first of these attempts began';
COMMENT ON COLUMN destination_attempts.outcome IS 'delivered or failed';
COMMENT ON COLUMN destination_attempts.reason IS 'Why they failed, in one word; null = delivered';
COMMENT ON COLUMN destination_attempts.status IS 'Status that the receiving system answered; null = none';
COMMENT ON COLUMN destination_attempts.detail IS 'What its owner can do; never an answer of the receiving system';
COMMENT ON COLUMN destination_attempts.attempts IS 'Number of attempts';
COMMENT ON COLUMN destination_attempts.pills IS 'Pills of these attempts';
COMMENT ON COLUMN destination_attempts.bytes IS 'Bytes that were delivered';
COMMENT ON COLUMN destination_attempts.latency_ms IS 'The longest of these attempts';
