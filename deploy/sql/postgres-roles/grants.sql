-- What each process may do in our schema, which is first in search_path, and in that of the queue
-- beside it. Applied by pillole_migrate after each migration, if the roles of roles.sql exist.
-- A table that is not named here is for the API and the operator alone.
DO $$
DECLARE
  ours text := current_schema();
  jobs text := current_schema() || '_jobs';
  everyone text := 'pillole_api, pillole_stream, pillole_dedicated, pillole_webhooks, '
    'pillole_destinations, pillole_admin';
  protected regclass;
BEGIN
  -- A right that this file no longer grants ends.
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I, %I FROM %s', ours, jobs, everyone);
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO %s', ours, everyone);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I
    TO pillole_api, pillole_admin', ours);

  -- The queue: its library protects its tables by row security without policies.
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO pillole_webhooks', jobs);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I
    TO pillole_webhooks', jobs);
  EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %I.migrations FROM pillole_webhooks', jobs);
  EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO pillole_webhooks', jobs);
  FOR protected IN
    SELECT oid FROM pg_class WHERE relnamespace = jobs::regnamespace AND relrowsecurity
  LOOP
    EXECUTE format('DROP POLICY IF EXISTS pillole_webhooks ON %s', protected);
    EXECUTE format('CREATE POLICY pillole_webhooks ON %s TO pillole_webhooks USING (true)', protected);
  END LOOP;

  -- Adds jobs as the owner of the queue, so that its callers need no rights there.
  EXECUTE format('ALTER FUNCTION wake_webhook_endpoints(text[], timestamptz)
    SECURITY DEFINER SET search_path = %I, pg_temp', ours);
END $$;
REVOKE EXECUTE ON FUNCTION wake_webhook_endpoints(text[], timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION wake_webhook_endpoints(text[], timestamptz)
  TO pillole_api, pillole_webhooks, pillole_admin;

-- api and admin: all tables, but they write neither migrations, nor what only another process
-- writes, nor what has happened. A trigger chains audit entries, and a function prunes the oldest.
REVOKE ALL ON kysely_migration, kysely_migration_lock, webhook_positions, webhook_joined,
  webhook_workers FROM pillole_api;
REVOKE INSERT, UPDATE, DELETE ON kysely_migration, kysely_migration_lock, webhook_positions,
  webhook_joined, webhook_workers FROM pillole_admin;
-- Whether all migrations are applied.
GRANT SELECT ON kysely_migration TO pillole_api;
REVOKE INSERT, UPDATE, DELETE ON dedicated_stream_states, stream_processes
  FROM pillole_api, pillole_admin;
REVOKE UPDATE, DELETE ON billing_events FROM pillole_api, pillole_admin;
REVOKE UPDATE, DELETE ON audit_log FROM pillole_api, pillole_admin;
REVOKE INSERT, UPDATE, DELETE ON audit_chains FROM pillole_api, pillole_admin;
REVOKE EXECUTE ON FUNCTION prune_audit(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION prune_audit(interval, integer) TO pillole_api;

GRANT SELECT ON accounts, subscriptions, api_keys TO pillole_stream, pillole_webhooks;
GRANT SELECT ON accounts, subscriptions TO pillole_destinations;
GRANT SELECT ON authentication_schemes, desks TO pillole_stream;
GRANT SELECT, INSERT ON authentication_nonces TO pillole_stream;
GRANT SELECT, DELETE, UPDATE ON access_changes TO pillole_stream, pillole_webhooks;
GRANT SELECT, INSERT, UPDATE, DELETE ON pepper_holders
  TO pillole_stream, pillole_webhooks, pillole_destinations;

GRANT UPDATE (last_used_at, last_used_address, hash, pepper) ON api_keys TO pillole_stream;
GRANT UPDATE (last_used_at, last_used_address) ON authentication_schemes TO pillole_stream;
GRANT SELECT, INSERT, UPDATE ON security_events TO pillole_stream;
GRANT INSERT ON audit_log TO pillole_stream;
GRANT SELECT, INSERT, UPDATE ON latency_hours TO pillole_stream, pillole_webhooks;
GRANT SELECT, DELETE ON stream_tickets TO pillole_stream;
GRANT SELECT (hash, expires_at) ON sessions TO pillole_stream;
GRANT SELECT, INSERT, UPDATE, DELETE ON stream_processes, stream_sessions TO pillole_stream;

-- dedicated: a member of pillole_stream.
GRANT SELECT, UPDATE, DELETE ON dedicated_streams TO pillole_dedicated;
GRANT SELECT, INSERT, UPDATE, DELETE ON dedicated_stream_states TO pillole_dedicated;

GRANT SELECT, INSERT, UPDATE, DELETE
  ON webhook_deliveries, webhook_positions, webhook_joined, webhook_workers TO pillole_webhooks;
GRANT SELECT, UPDATE ON webhook_endpoints TO pillole_webhooks;
GRANT SELECT ON webhook_secrets TO pillole_webhooks;
GRANT SELECT, INSERT, UPDATE ON account_events TO pillole_webhooks;
GRANT INSERT ON access_changes, audit_log TO pillole_webhooks;

GRANT SELECT ON destinations TO pillole_destinations;
GRANT UPDATE (paused_by, failing_since, fault_since, last_delivered_at, owner, owner_until)
  ON destinations TO pillole_destinations;
GRANT SELECT, INSERT, UPDATE ON destination_positions TO pillole_destinations;
GRANT SELECT, INSERT, DELETE ON destination_attempts TO pillole_destinations;
GRANT INSERT ON audit_log TO pillole_destinations;
