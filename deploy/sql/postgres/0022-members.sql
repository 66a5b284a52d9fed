-- Members of an account with roles, and invitations by mail.

ALTER TABLE users ADD COLUMN role text NOT NULL DEFAULT 'owner'
  CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'read_only'));
COMMENT ON COLUMN users.role IS 'What the user may do for the account; each account has at least one owner';

CREATE TABLE invitations (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
  email text NOT NULL CHECK (email = lower(email)),
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'read_only')),
  hash bytea NOT NULL UNIQUE,
  mails integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  expires_at timestamptz NOT NULL,
  UNIQUE (account_id, email)
);
CREATE INDEX invitations_expiry ON invitations (expires_at);
COMMENT ON TABLE invitations IS 'Invitations to act for an account; accepted and revoked ones are deleted, expired ones a week later';
COMMENT ON COLUMN invitations.id IS 'inv_ and 12 random characters';
COMMENT ON COLUMN invitations.account_id IS 'Account that invites';
COMMENT ON COLUMN invitations.email IS 'Address in lower case that the token was sent to; only its owner can accept';
COMMENT ON COLUMN invitations.role IS 'Role that the new member gets';
COMMENT ON COLUMN invitations.hash IS 'SHA-256 of the token in the last mail';
COMMENT ON COLUMN invitations.mails IS 'Mails sent, the first one included';
COMMENT ON COLUMN invitations.created_at IS 'When the invitation was made';
COMMENT ON COLUMN invitations.created_by IS 'Actor, as in the audit log';
COMMENT ON COLUMN invitations.expires_at IS 'When the token stops being accepted';

ALTER TABLE stream_tickets ADD COLUMN role text;
COMMENT ON COLUMN stream_tickets.role IS 'Role of the user whose session requested the ticket; null = a key or scheme did';
