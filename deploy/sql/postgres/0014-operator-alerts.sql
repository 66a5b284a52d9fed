-- Alerts about generators to the operator: an episode has one row for each way to reach the operator.

CREATE TABLE operator_alerts (
  id text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('silent', 'refusals')),
  source text NOT NULL,
  channel text NOT NULL CHECK (channel IN ('mail', 'webhook')),
  detail text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  mailed_at timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL DEFAULT now(),
  parked_at timestamptz
);
CREATE UNIQUE INDEX operator_alerts_running ON operator_alerts (kind, source, channel)
  WHERE ended_at IS NULL;
CREATE INDEX operator_alerts_unmailed ON operator_alerts (created_at, id)
  WHERE mailed_at IS NULL AND parked_at IS NULL;
COMMENT ON TABLE operator_alerts IS 'Alerts about generators, each sent once per episode';
COMMENT ON COLUMN operator_alerts.id IS 'alt_ and 12 random characters';
COMMENT ON COLUMN operator_alerts.kind IS 'silent: no pills in a session; refusals: many of its pills are refused';
COMMENT ON COLUMN operator_alerts.source IS 'The generator; empty if unknown';
COMMENT ON COLUMN operator_alerts.channel IS 'How it is sent: mail or webhook';
COMMENT ON COLUMN operator_alerts.detail IS 'What was seen, as one sentence';
COMMENT ON COLUMN operator_alerts.created_at IS 'When the episode was first seen';
COMMENT ON COLUMN operator_alerts.ended_at IS 'When the episode had ended; null = it goes on';
COMMENT ON COLUMN operator_alerts.mailed_at IS 'When the receiver accepted the alert; null = not yet';
COMMENT ON COLUMN operator_alerts.attempts IS 'Number of attempts to send it';
COMMENT ON COLUMN operator_alerts.next_at IS 'Earliest next attempt; during an attempt, when another process may try';
COMMENT ON COLUMN operator_alerts.parked_at IS 'When it was given up and logged; null = sent or waiting';
