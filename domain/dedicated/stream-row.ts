import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** A dedicated socket as its owner sees it. */
export type DedicatedStream = ReturnType<typeof streamOf>;

/** A supervisor writes at least every 5 s. */
const SILENT_AFTER_S = 15;

/** Neither removed nor at the end of its overlap. */
export const IS_LIVE_STREAM = sql<boolean>`
  (removed_at IS NULL AND coalesce(expires_at > now(), true))`;

/** Rows with their last report. */
export function selectStreams(db: Database | Transaction<Tables>) {
  return db
    .selectFrom('dedicated_streams as d')
    .leftJoin('dedicated_stream_states as s', 's.name', 'd.name')
    .select(['d.name', 'd.account_id', 'd.label', 'd.port', 'd.created_at'])
    .select(['d.replaced_by', 'd.expires_at', 'd.removed_at'])
    .select(['s.state', 's.reason', 's.since', 's.restarts', 's.connections'])
    .select(['s.queue_bytes', 's.queue_ms', 's.lag_records', 's.reported_at'])
    .select(
      sql<boolean>`coalesce(s.reported_at, d.created_at) < now() - make_interval(secs => ${SILENT_AFTER_S})`.as(
        'is_silent',
      ),
    );
}

type Row = Awaited<ReturnType<ReturnType<typeof selectStreams>['execute']>>[number];

export function streamOf(row: Row) {
  return {
    /** `ded_` and 12 random characters. */
    name: row.name,
    accountId: row.account_id,
    label: row.label,
    port: row.port,
    createdAt: row.created_at,
    replacedBy: row.replaced_by ?? undefined,
    /** End of a rotation's overlap. */
    expiresAt: row.expires_at ?? undefined,
    removedAt: row.removed_at ?? undefined,
    ...stateOf(row),
    restarts: row.restarts ?? 0,
    connections: row.connections ?? 0,
    queueBytes: Number(row.queue_bytes ?? 0),
    queueMs: row.queue_ms ?? 0,
    /** undefined = the log cannot be read. */
    lagRecords: row.lag_records === null ? undefined : Number(row.lag_records),
    reportedAt: row.reported_at ?? undefined,
  };
}

/** `unknown`: no supervisor has reported the socket for a while; its process may still run. */
function stateOf(row: Row): {
  readonly state: Tables['dedicated_stream_states']['state'] | 'unknown';
  /** Why the socket is not ready. */
  readonly reason: string | undefined;
  readonly since: Date;
} {
  if (row.removed_at !== null) {
    return { state: 'stopped', reason: 'The socket was removed.', since: row.removed_at };
  }
  if (row.is_silent) {
    const reason = 'The supervisor has not reported for a while; the socket may still work.';
    return { state: 'unknown', reason, since: row.reported_at ?? row.created_at };
  }
  const { state, reason, since } = row;
  if (state === null || since === null) {
    return { state: 'starting', reason: 'The process is starting.', since: row.created_at };
  }
  return { state, reason: reason ?? undefined, since };
}
