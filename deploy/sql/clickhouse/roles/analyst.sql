-- The rights of analysts on a ClickHouse server: the market, and no data of customers. What is not
-- granted here is invisible, so a new table or view stays so until a line grants it. Run the file as
-- an administrator, again after each upgrade; replace `pillole` if there is a namespace:
--
--   clickhouse-client --queries-file deploy/sql/clickhouse/roles/analyst.sql
--
-- The server must have select_from_system_db_requires_grant, as in ClickHouse's own configuration;
-- otherwise system.processes and system.query_log show other users' statements.
CREATE ROLE IF NOT EXISTS pillole_analyst;
REVOKE ALL ON *.* FROM pillole_analyst;
GRANT SELECT ON pillole.pills TO pillole_analyst;
GRANT SELECT ON pillole.pills_once TO pillole_analyst;
GRANT SELECT ON pillole.bars TO pillole_analyst;
GRANT SELECT ON pillole.span_bars TO pillole_analyst;
GRANT SELECT ON pillole.summary TO pillole_analyst;
GRANT SELECT ON pillole.states TO pillole_analyst;
GRANT SELECT ON pillole.movers TO pillole_analyst;
GRANT SELECT ON pillole.track_record TO pillole_analyst;
GRANT SELECT ON pillole.intervals TO pillole_analyst;
-- With readonly = 2, drivers may set their own settings. A minimum forbids 0, which is "no limit".
CREATE SETTINGS PROFILE OR REPLACE pillole_analyst SETTINGS
    readonly = 2 CONST,
    max_execution_time = 5 MIN 0.001 MAX 5,
    max_memory_usage = 1073741824 MIN 1 MAX 1073741824,
    max_rows_to_read = 100000000 MIN 1 MAX 100000000,
    max_result_rows = 100000 MIN 1 MAX 100000,
    max_result_bytes = 67108864 MIN 1 MAX 67108864,
    max_threads = 1 MIN 1 MAX 1,
    max_concurrent_queries_for_user = 4 CONST
TO pillole_analyst;
-- This user cannot sign in until the administrator sets a password:
--   ALTER USER analyst IDENTIFIED WITH sha256_password BY '…' HOST ANY
CREATE USER IF NOT EXISTS analyst HOST NONE DEFAULT ROLE pillole_analyst
