-- Scopes webhooks:read, webhooks:write and support; `read` writes nothing from here on. Every key
-- could open tickets. Keys that their owner never limited (read and stream, the default) still can;
-- a key limited to one scope now does only what this scope says. No key gets webhooks:write: it
-- includes creating, moving and deleting endpoints, which no key could do before.
UPDATE api_keys SET scopes = scopes || '{support}'
  WHERE scopes @> '{read,stream}' AND NOT scopes @> '{support}' AND revoked_at IS NULL;

COMMENT ON COLUMN api_keys.scopes IS 'What the key may be used for: read, stream, webhooks:read, webhooks:write, support';
