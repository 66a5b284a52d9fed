import { type RawBuilder, sql } from 'kysely';
import type { Log } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { SESSION_IDLE_S } from './sessions.ts';
import { KNOWN_DAYS } from './sign-in-networks.ts';
import { USAGE_LIMITS } from './usage.ts';

/** UTC days of usage that are kept, including today: 13 months, and all days that `readUsage` serves. */
export const USAGE_KEPT_DAYS = USAGE_LIMITS.daysMax;
/** The audit log is kept for 1 year, leap years included, also for erased accounts. */
export const AUDIT_KEPT_DAYS = 366;
export const SECURITY_EVENTS_KEPT_DAYS = 30;
export const USAGE_HOURS_KEPT_DAYS = 32;
/** Latency, availability and incidents by hour. */
export const SERVICE_KEPT_DAYS = 400;

/** Rows per statement, so that it ends long before the timeout and holds its locks briefly. */
const BATCH_ROWS = 1_000;
/** Statements per table and round; the remaining rows wait for the next round. */
const BATCHES_MAX = 200;
const EVERY_MS = 3_600_000;

/**
 * Old usage is found account by account along the primary key, which needs neither an index by day
 * nor a full scan. The subquery reads the quota clock once: in the condition itself, the volatile
 * function would be called for every row.
 */
const pruneUsage = (table: 'usage_days' | 'usage_calls') => (limit: number) =>
  sql`
  DELETE FROM ${sql.table(table)} WHERE ctid = ANY (ARRAY(
    SELECT old.ctid FROM accounts a CROSS JOIN LATERAL (
      SELECT ctid FROM ${sql.table(table)} WHERE account_id = a.id
        AND day <= (SELECT (quota_now() AT TIME ZONE 'UTC')::date - ${USAGE_KEPT_DAYS}::int)
      LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ) old LIMIT ${limit}))`;

const pruneService =
  (
    table: 'latency_hours' | 'availability_hours' | 'service_incidents',
    time: RawBuilder<unknown>,
  ) =>
  (limit: number) =>
    sql`
  DELETE FROM ${sql.table(table)} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${sql.table(table)}
    WHERE ${time} < now() - make_interval(days => ${SERVICE_KEPT_DAYS})
    LIMIT ${limit} FOR UPDATE SKIP LOCKED))`;

const pruneExpired =
  (
    table: 'sessions' | 'mail_tokens' | 'stream_tickets' | 'invitations',
    isOver = sql`expires_at <= now()`,
  ) =>
  (limit: number) =>
    sql`
  DELETE FROM ${sql.table(table)} WHERE hash IN (
    SELECT hash FROM ${sql.table(table)} WHERE ${isOver} LIMIT ${limit} FOR UPDATE SKIP LOCKED)`;

/**
 * Deletes at most `limit` rows of a table, skipping rows that another process has locked. Sessions,
 * tokens and tickets are deleted when they have expired; used tokens and tickets are already deleted.
 */
const PRUNES = {
  usage_days: pruneUsage('usage_days'),
  usage_calls: pruneUsage('usage_calls'),
  desk_usage_days: (limit: number) => sql`
    DELETE FROM desk_usage_days WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM desk_usage_days
      WHERE day <= (SELECT (quota_now() AT TIME ZONE 'UTC')::date - ${USAGE_KEPT_DAYS}::int)
      LIMIT ${limit} FOR UPDATE SKIP LOCKED))`,
  // In the database, because the anchors of the hash chains move in the same transaction.
  usage_hours: (limit: number) => sql`
    DELETE FROM usage_hours WHERE ctid = ANY (ARRAY(
      SELECT old.ctid FROM accounts a CROSS JOIN LATERAL (
        SELECT ctid FROM usage_hours WHERE account_id = a.id
          AND hour < (SELECT quota_now() - make_interval(days => ${USAGE_HOURS_KEPT_DAYS}))
        LIMIT ${limit} FOR UPDATE SKIP LOCKED
      ) old LIMIT ${limit}))`,
  latency_hours: pruneService('latency_hours', sql`hour`),
  availability_hours: pruneService('availability_hours', sql`hour`),
  service_incidents: pruneService('service_incidents', sql`began_at`),
  audit_log: (limit: number) =>
    sql`SELECT prune_audit(make_interval(days => ${AUDIT_KEPT_DAYS}), ${limit}) AS deleted`,
  security_events: (limit: number) => sql`
    DELETE FROM security_events WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM security_events
      WHERE at < now() - make_interval(days => ${SECURITY_EVENTS_KEPT_DAYS})
      ORDER BY at LIMIT ${limit} FOR UPDATE SKIP LOCKED))`,
  sessions: pruneExpired(
    'sessions',
    sql`expires_at <= now() OR last_seen_at <= now() - make_interval(secs => ${SESSION_IDLE_S})`,
  ),
  mail_tokens: pruneExpired('mail_tokens'),
  stream_tickets: pruneExpired('stream_tickets'),
  invitations: pruneExpired('invitations', sql`expires_at <= now() - interval '7 days'`),
  sign_in_networks: (limit: number) => sql`
    DELETE FROM sign_in_networks WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM sign_in_networks
      WHERE last_at <= now() - make_interval(days => ${KNOWN_DAYS})
      LIMIT ${limit} FOR UPDATE SKIP LOCKED))`,
};

/** Deleted rows by table. */
type Pruned = Readonly<Record<keyof typeof PRUNES, number>>;

/**
 * Deletes rows past their retention, in batches that are each a transaction of their own. Several
 * processes may prune concurrently.
 * @throws any database error; rows deleted before it stay deleted
 */
export async function pruneOld(
  db: Database,
  options: {
    readonly batchRows?: number;
    readonly batchesMax?: number;
    /** On abort, pruning ends after the present batch. */
    readonly signal?: AbortSignal;
  } = {},
): Promise<Pruned> {
  const { batchRows = BATCH_ROWS, batchesMax = BATCHES_MAX, signal } = options;
  const pruned = { ...NOTHING };
  for (const table of TABLES) {
    for (let batch = 0; batch < batchesMax && signal?.aborted !== true; batch += 1) {
      const { numAffectedRows = 0n, rows } = await PRUNES[table](batchRows).execute(db);
      const deleted = (rows[0] as { deleted?: number } | undefined)?.deleted;
      pruned[table] += deleted ?? Number(numAffectedRows);
      if ((deleted ?? numAffectedRows) < batchRows) break;
    }
  }
  return pruned;
}

const TABLES = Object.keys(PRUNES) as (keyof Pruned)[];
const NOTHING = Object.fromEntries(TABLES.map((table) => [table, 0])) as Pruned;

/** Prunes about once an hour, first within minutes of the start. */
export function startRetention(
  db: Database,
  { log, everyMs = EVERY_MS }: { readonly log: Log; readonly everyMs?: number },
) {
  return runEvery({
    name: 'retention',
    everyMs,
    log,
    firstMs: (everyMs / 10) * Math.random(),
    jitter: 0.25,
    async run(signal) {
      const pruned = await pruneOld(db, { signal });
      if (Object.values(pruned).some((rows) => rows > 0)) log.info({ pruned }, 'old rows pruned');
    },
  });
}
