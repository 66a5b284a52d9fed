import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { PROCESS_ALIVE_S } from './pace.ts';

/** Sockets that one list tells; the count is told whole. */
export const LISTED_MAX = 1_000;

/** An open socket of an account. */
export interface StreamSession {
  /** `s_` and 12 hex digits, as `welcome` tells it. */
  readonly session: string;
  readonly openedAt: Date;
  readonly address: string;
  /** `pil_live_…ab12`, or `session` when a browser came with a ticket of its sign-in. */
  readonly hint: string;
  readonly encoding: 'json' | 'avro';
  /** How long its oldest unread frame waits, and what waits, as written some 2 s ago at most. */
  readonly queueMs: number;
  readonly queueBytes: number;
}

/** The open sockets of an account, oldest first, over all processes. Throws what the database says. */
export async function listStreamSessions(
  db: Database,
  accountId: string,
): Promise<{ readonly count: number; readonly sessions: readonly StreamSession[] }> {
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
      session: row.session,
      openedAt: row.opened_at,
      address: row.address,
      hint: row.hint,
      encoding: row.encoding,
      queueMs: row.queue_ms,
      queueBytes: Number(row.queue_bytes),
    })),
  };
}

/**
 * Asks the process that holds a socket to close it; it does within a second.
 * @returns false when the account has no such socket
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
