import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../lib/postgres/database.ts';

/** Rows that a transaction of the test has locked. */
export type HeldRows = Awaited<ReturnType<typeof holdRows>>;

/** Locks rows over a connection of its own, until they are released. */
export async function holdRows(server: Database, lock: RawBuilder<unknown>) {
  let release!: () => void;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let over!: Promise<void>;
  const pid = await new Promise<number>((resolve, reject) => {
    over = server.transaction().execute(async (tx) => {
      await sql`SET LOCAL idle_in_transaction_session_timeout = 0`.execute(tx);
      await lock.execute(tx);
      const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(tx);
      resolve(rows[0]!.pid);
      await released;
    });
    over.catch(reject);
  });
  return {
    server,
    pid,
    async release(): Promise<void> {
      release();
      await over;
    },
  };
}

/** Counts the connections that wait for the rows, or for one that waits for them. */
export async function blockedBehind({ server, pid }: HeldRows): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    WITH RECURSIVE edges AS MATERIALIZED (
      -- Other than pg_stat_activity, pg_locks shows the connections of other roles too.
      SELECT pid, unnest(pg_blocking_pids(pid)) AS by
      FROM (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted) waiting
    ), blocked AS (
      SELECT pid FROM edges WHERE by = ${pid}
      UNION SELECT e.pid FROM edges e JOIN blocked b ON e.by = b.pid
    )
    SELECT count(*)::int AS count FROM blocked`.execute(server);
  return rows[0]!.count;
}
