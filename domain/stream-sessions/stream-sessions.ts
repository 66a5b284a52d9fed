import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { PROCESS_ALIVE_S } from './session-timing.ts';

/** Sockets per list; the count covers all of them. */
export const LISTED_MAX = 1_000;

/** Lists an account's open sockets over all processes, oldest first. @throws any database error */
export async function listStreamSessions(db: Database, accountId: string) {
  const rows = await db
    .selectFrom('stream_sessions as s')
    .innerJoin('stream_processes as p', 'p.process', 's.process')
    .select(['s.session', 's.opened_at', 's.address', 's.hint', 's.encoding'])
    .select(['s.queue_ms', 's.queue_bytes'])
    .select(sql<string>`count(*) OVER ()`.as('count'))
    .where('s.account_id', '=', accountId)
    .where('p.seen_at', '>', sql<Date>`now() - make_interval(secs => ${PROCESS_ALIVE_S})`)
    .orderBy('s.opened_at')
    .orderBy('s.session')
    .limit(LISTED_MAX)
    .execute();
  return {
    count: Number(rows[0]?.count ?? 0),
    sessions: rows.map((row) => ({
      /** `s_` and 12 hex digits, as in `welcome`. */
      session: row.session,
      openedAt: row.opened_at,
      address: row.address,
      /** `pil_live_…ab12`, or `session` for a browser with a ticket of its sign-in. */
      hint: row.hint,
      encoding: row.encoding as 'json' | 'avro',
      /** Age of the oldest unread frame, and unread bytes, as of at most about 2 s ago. */
      queueMs: row.queue_ms,
      queueBytes: Number(row.queue_bytes),
    })),
  };
}

/**
 * Asks the process that holds a socket to close it, which takes at most a second.
 * @returns false if the account has no such socket
 */
export async function endStreamSession(
  db: Database,
  accountId: string,
  session: string,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('stream_sessions')
    .set({ end_asked_at: sql<Date>`coalesce(end_asked_at, now())` })
    .where('account_id', '=', accountId)
    .where('session', '=', session)
    .where(
      'process',
      'in',
      db
        .selectFrom('stream_processes')
        .select('process')
        .where('seen_at', '>', sql<Date>`now() - make_interval(secs => ${PROCESS_ALIVE_S})`),
    )
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}
