import { sql, type Transaction } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';

/** `unknown`: no supervisor has told of it for a while; the process may well run. */
export type DedicatedState = Tables['dedicated_stream_states']['state'] | 'unknown';

/** A dedicated socket as its owner sees it. */
export interface DedicatedStream {
  /** `ded_` and 12 random characters. */
  readonly name: string;
  readonly accountId: string;
  readonly label: string;
  readonly port: number;
  readonly createdAt: Date;
  readonly replacedBy: string | undefined;
  /** End of a rotation's overlap. */
  readonly expiresAt: Date | undefined;
  readonly removedAt: Date | undefined;
  readonly state: DedicatedState;
  /** Why it is not ready. */
  readonly reason: string | undefined;
  readonly since: Date;
  readonly restarts: number;
  readonly connections: number;
  readonly queueBytes: number;
  readonly queueMs: number;
  /** undefined = the log cannot be asked. */
  readonly lagRecords: number | undefined;
  readonly reportedAt: Date | undefined;
}

/** A supervisor writes at least every 5 s. */
const SILENT_AFTER_S = 15;

/** Neither removed nor at the end of its overlap. */
export const LIVE = sql<boolean>`
  (removed_at IS NULL AND coalesce(expires_at > now(), true))`;

/** Rows of the table, each with what was told of it last. */
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

export function streamOf(row: Row): DedicatedStream {
  return {
    name: row.name,
    accountId: row.account_id,
    label: row.label,
    port: row.port,
    createdAt: row.created_at,
    replacedBy: row.replaced_by ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    removedAt: row.removed_at ?? undefined,
    ...stateOf(row),
    restarts: row.restarts ?? 0,
    connections: row.connections ?? 0,
    queueBytes: Number(row.queue_bytes ?? 0),
    queueMs: row.queue_ms ?? 0,
    lagRecords: row.lag_records === null ? undefined : Number(row.lag_records),
    reportedAt: row.reported_at ?? undefined,
  };
}

function stateOf(row: Row): Pick<DedicatedStream, 'state' | 'reason' | 'since'> {
  if (row.removed_at !== null) {
    return { state: 'stopped', reason: 'It was removed.', since: row.removed_at };
  }
  if (row.is_silent) {
    const reason = 'Its supervisor has not reported for a while; the socket may work all the same.';
    return { state: 'unknown', reason, since: row.reported_at ?? row.created_at };
  }
  const { state, reason, since } = row;
  if (state === null || since === null) {
    return { state: 'starting', reason: 'Its process is being started.', since: row.created_at };
  }
  return { state, reason: reason ?? undefined, since };
}
