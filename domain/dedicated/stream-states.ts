import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';

/** The state of a process as reported by its supervisor. */
export interface StateReport {
  readonly name: string;
  readonly state: 'starting' | 'ready' | 'failing' | 'stopped';
  readonly reason: string | undefined;
  readonly pid: number | undefined;
  readonly since: Date;
  readonly restarts: number;
  readonly connections: number;
  readonly queueBytes: number;
  readonly queueMs: number;
  readonly lagRecords: number | undefined;
}

/** Writes the states of all processes in one statement; sockets that no longer exist are skipped. */
export async function writeStates(db: Database, reports: readonly StateReport[]): Promise<void> {
  if (reports.length === 0) return;
  const rows = reports.map((one) => ({
    name: one.name,
    state: one.state,
    reason: one.reason ?? null,
    pid: one.pid ?? null,
    since: one.since.toISOString(),
    restarts: one.restarts,
    connections: one.connections,
    queue_bytes: one.queueBytes,
    queue_ms: one.queueMs,
    lag_records: one.lagRecords ?? null,
  }));
  await sql`
    INSERT INTO dedicated_stream_states AS s (name, state, reason, pid, since, restarts,
      connections, queue_bytes, queue_ms, lag_records)
    SELECT d.name, r.state, r.reason, r.pid, r.since, r.restarts,
      r.connections, r.queue_bytes, r.queue_ms, r.lag_records
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS r(name text, state text, reason text,
      pid int, since timestamptz, restarts int, connections int, queue_bytes bigint, queue_ms int,
      lag_records bigint)
    JOIN dedicated_streams d ON d.name = r.name
    ON CONFLICT (name) DO UPDATE SET (state, reason, pid, since, restarts, connections, queue_bytes,
      queue_ms, lag_records, reported_at) = (excluded.state, excluded.reason, excluded.pid,
      excluded.since, excluded.restarts, excluded.connections, excluded.queue_bytes,
      excluded.queue_ms, excluded.lag_records, now())`.execute(db);
}
