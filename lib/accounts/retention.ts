import { type RawBuilder, sql } from 'kysely';
import type { Log } from '../log.ts';
import type { Database } from '../postgres/database.ts';
import { type Repetition, repeat } from '../repeat.ts';
import { SESSION_IDLE_S } from './sessions.ts';
import { USAGE_LIMITS } from './usage.ts';

/** UTC days of usage that are kept, today included: 13 months, and all that `readUsage` tells. */
export const USAGE_KEPT_DAYS = USAGE_LIMITS.daysMax;
/** The audit log is kept for 1 year, leap years too; also that of accounts that are erased. */
export const AUDIT_KEPT_DAYS = 366;

/** Rows of one statement: it ends long before the time-out, and holds its locks that long. */
const BATCH_ROWS = 1_000;
/** Statements for one table in one round; what is left is the next round's. */
const BATCHES_MAX = 200;
const EVERY_MS = 3_600_000;

/** Deletes at most `limit` rows of one table. Rows that another process has locked are left. */
type Prune = (limit: number) => RawBuilder<unknown>;

/**
 * Looked for account by account, along the primary key: needs no index by day, and reads no table
 * to its end. The clock is that of quotas; asked once, because a volatile function in the
 * condition itself would be asked for every row.
 */
const USAGE_TOO_OLD = sql`
  day <= (SELECT (quota_now() AT TIME ZONE 'UTC')::date - ${USAGE_KEPT_DAYS}::int)`;

/** Sessions, tokens and tickets go when they have ended; those that were used are gone already. */
const PRUNES = {
  usage_days: (limit) => sql`
    DELETE FROM usage_days WHERE ctid = ANY (ARRAY(
      SELECT old.ctid FROM accounts a CROSS JOIN LATERAL (
        SELECT ctid FROM usage_days WHERE account_id = a.id AND ${USAGE_TOO_OLD}
        LIMIT ${limit} FOR UPDATE SKIP LOCKED
      ) old LIMIT ${limit}))`,
  usage_calls: (limit) => sql`
    DELETE FROM usage_calls WHERE ctid = ANY (ARRAY(
      SELECT old.ctid FROM accounts a CROSS JOIN LATERAL (
        SELECT ctid FROM usage_calls WHERE account_id = a.id AND ${USAGE_TOO_OLD}
        LIMIT ${limit} FOR UPDATE SKIP LOCKED
      ) old LIMIT ${limit}))`,
  // Ids are the order of writing, so the oldest rows alone are looked at.
  audit_log: (limit) => sql`
    DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log ORDER BY id LIMIT ${limit})
      AND at < now() - make_interval(days => ${AUDIT_KEPT_DAYS})`,
  sessions: (limit) => sql`
    DELETE FROM sessions WHERE hash IN (
      SELECT hash FROM sessions WHERE expires_at <= now()
        OR last_seen_at <= now() - make_interval(secs => ${SESSION_IDLE_S})
      LIMIT ${limit} FOR UPDATE SKIP LOCKED)`,
  mail_tokens: (limit) => sql`
    DELETE FROM mail_tokens WHERE hash IN (
      SELECT hash FROM mail_tokens WHERE expires_at <= now()
      LIMIT ${limit} FOR UPDATE SKIP LOCKED)`,
  stream_tickets: (limit) => sql`
    DELETE FROM stream_tickets WHERE hash IN (
      SELECT hash FROM stream_tickets WHERE expires_at <= now()
      LIMIT ${limit} FOR UPDATE SKIP LOCKED)`,
} as const satisfies Readonly<Record<string, Prune>>;

/** Rows that were deleted, by table. */
export type Pruned = Readonly<Record<keyof typeof PRUNES, number>>;

/**
 * Deletes what has been kept for its time, in batches that each are a transaction of their own.
 * Several processes may do it at once.
 * @throws what the database says; what was deleted until then stays deleted
 */
export async function pruneOld(
  db: Database,
  options: {
    readonly batchRows?: number;
    readonly batchesMax?: number;
    /** Aborted: it ends after the batch that is on its way. */
    readonly signal?: AbortSignal;
  } = {},
): Promise<Pruned> {
  const { batchRows = BATCH_ROWS, batchesMax = BATCHES_MAX, signal } = options;
  const pruned = { ...NOTHING };
  for (const table of TABLES) {
    for (let batch = 0; batch < batchesMax && signal?.aborted !== true; batch += 1) {
      const { numAffectedRows = 0n } = await PRUNES[table](batchRows).execute(db);
      pruned[table] += Number(numAffectedRows);
      if (numAffectedRows < batchRows) break;
    }
  }
  return pruned;
}

const TABLES = Object.keys(PRUNES) as (keyof Pruned)[];
const NOTHING = Object.fromEntries(TABLES.map((table) => [table, 0])) as Pruned;

/** Prunes about once an hour, the first time within minutes of the start. */
export function startRetention(
  db: Database,
  { log, everyMs = EVERY_MS }: { readonly log: Log; readonly everyMs?: number },
): Repetition {
  return repeat({
    ...{ name: 'retention', everyMs, log },
    firstMs: (everyMs / 10) * Math.random(),
    jitter: 0.25,
    async run(signal) {
      const pruned = await pruneOld(db, { signal });
      if (Object.values(pruned).some((rows) => rows > 0)) log.info({ pruned }, 'old rows pruned');
    },
  });
}
