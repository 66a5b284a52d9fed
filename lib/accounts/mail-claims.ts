import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';

/** Tables whose rows are mailed once each. */
export type MailedTable = 'account_events' | 'support_tickets';

/** A row that is being mailed by us. */
export interface Claimed {
  readonly id: string;
  /** This one included. */
  readonly attempts: number;
}

/** Nobody else tries a row for so long; a process that dies amid it is followed after that. */
const LEASE_S = 120;
/** A row that could not be mailed for so long is parked. */
export const GIVE_UP_AFTER_DAYS = 3;
/** Attempts at a mail that is refused itself, or cannot be made; then its row is parked. */
export const REFUSED_ATTEMPTS_MAX = 6;
/** Waits double with each attempt: of a refused mail, and of one while the server takes none. */
const REFUSED_WAIT_S = { first: 600, max: 6 * 3_600 };
const AWAY_WAIT_S = { first: 2, max: 60 };

/**
 * Takes the oldest row that waits, in a transaction of its own: while its mail leaves, no
 * connection and no lock is held. It counts as an attempt, whatever becomes of it.
 */
export async function claimMail<Row extends Claimed>(
  db: Database,
  table: MailedTable,
): Promise<Row | undefined> {
  const { rows } = await sql<Row>`
    UPDATE ${sql.table(table)}
    SET attempts = attempts + 1, next_at = now() + make_interval(secs => ${LEASE_S})
    WHERE id = (
      SELECT id FROM ${sql.table(table)}
      WHERE mailed_at IS NULL AND parked_at IS NULL AND next_at <= now()
      ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING *`.execute(db);
  return rows[0];
}

/** It was mailed. */
export async function settleMail(db: Database, table: MailedTable, id: string): Promise<void> {
  await sql`UPDATE ${sql.table(table)} SET mailed_at = now() WHERE id = ${id}`.execute(db);
}

/**
 * Puts a row off until its next attempt, or for good.
 * @param isOwnFault others may well be mailed now @returns whether it is parked
 */
export async function putOffMail(
  db: Database,
  table: MailedTable,
  { id, attempts }: Claimed,
  isOwnFault: boolean,
): Promise<boolean> {
  if (isOwnFault && attempts >= REFUSED_ATTEMPTS_MAX) {
    await sql`UPDATE ${sql.table(table)} SET parked_at = now() WHERE id = ${id}`.execute(db);
    return true;
  }
  const { first, max } = isOwnFault ? REFUSED_WAIT_S : AWAY_WAIT_S;
  const waitS = Math.min(max, first * 2 ** (attempts - 1));
  await sql`UPDATE ${sql.table(table)} SET next_at = now() + make_interval(secs => ${waitS})
    WHERE id = ${id}`.execute(db);
  return false;
}

/** Parks rows that could not be mailed for 3 days. @returns their ids */
export async function parkOld(db: Database, table: MailedTable): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    UPDATE ${sql.table(table)} SET parked_at = now()
    WHERE mailed_at IS NULL AND parked_at IS NULL
      AND created_at <= now() - make_interval(days => ${GIVE_UP_AFTER_DAYS})
    RETURNING id`.execute(db);
  return rows.map(({ id }) => id);
}
