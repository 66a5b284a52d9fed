-- The roles of the processes, without passwords. A superuser runs this file on the database of the
-- platform, at any time and again after an update:
--
--   psql -v ON_ERROR_STOP=1 -f deploy/sql/postgres-roles/roles.sql pillole
--   psql -c '\password pillole_migrate' pillole      (likewise for each role)
--
-- pillole_migrate owns all tables and applies migrations; it may not create roles or databases. The
-- others own nothing: `npm run provision`, as pillole_migrate, grants them what grants.sql lists.
DO $$
DECLARE
  names text[] := ARRAY['pillole_migrate', 'pillole_api', 'pillole_stream', 'pillole_dedicated',
    'pillole_webhooks', 'pillole_destinations', 'pillole_admin'];
  name text;
BEGIN
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  FOREACH name IN ARRAY names LOOP
    IF to_regrole(name) IS NULL THEN
      EXECUTE format('CREATE ROLE %I', name);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS',
      name);
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name);
  END LOOP;
  EXECUTE format('GRANT CREATE ON DATABASE %I TO pillole_migrate', current_database());
END $$;

-- The supervisor starts stream processes, which get its address of the database.
GRANT pillole_stream TO pillole_dedicated;

-- Tables that another role made, before there were roles, become those of pillole_migrate.
DO $$
DECLARE
  change text;
BEGIN
  FOR change IN
    WITH ours AS (
      SELECT oid, nspname, nspowner FROM pg_namespace WHERE nspname ~ '^pillole($|_)'
    ), foreigns AS (
      SELECT 1 AS step, format('SCHEMA %I', nspname) AS object FROM ours
      WHERE nspowner <> 'pillole_migrate'::regrole
      UNION ALL
      SELECT 2, format('%s %s', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE'
        WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END, c.oid::regclass)
      FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'S', 'c') AND c.relowner <> 'pillole_migrate'::regrole
        -- The sequence of a column follows its table.
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND c.relkind = 'S'
          AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))
      UNION ALL
      SELECT 3, format('ROUTINE %s', p.oid::regprocedure)
      FROM pg_proc p JOIN ours ON ours.oid = p.pronamespace
      WHERE p.proowner <> 'pillole_migrate'::regrole
      UNION ALL
      SELECT 4, format('TYPE %s', t.oid::regtype)
      FROM pg_type t JOIN ours ON ours.oid = t.typnamespace
      WHERE t.typtype IN ('e', 'd') AND t.typowner <> 'pillole_migrate'::regrole
    )
    SELECT format('ALTER %s OWNER TO pillole_migrate', object) FROM foreigns ORDER BY step
  LOOP
    EXECUTE change;
  END LOOP;
END $$;
