import { type Selectable, sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** Tables whose rows are each mailed once. */
export type MailedTable =
  | 'account_events'
  | 'support_tickets'
  | 'support_messages'
  | 'operator_alerts';

interface ClaimedRow {
  readonly id: string;
  /** Including the present one. */
  readonly attempts: number;
}

export type MailedRow<T extends MailedTable> = Selectable<Tables[T]> & ClaimedRow;

/** Length of a claim; if the process dies, another one retries the row after that. */
const LEASE_S = 120;
/** A row that could not be mailed for this long is parked. */
export const GIVE_UP_AFTER_DAYS = 3;
/** Attempts at a mail that is refused or cannot be composed; then the row is parked. */
export const REFUSED_ATTEMPTS_MAX = 6;
/** Waits, doubled with each attempt: for a refused mail, and while the mail server is unavailable. */
const REFUSED_WAIT_S = { first: 600, max: 6 * 3_600 };
const AWAY_WAIT_S = { first: 2, max: 60 };

/**
 * Claims the oldest waiting row in a transaction of its own, so that no connection or lock is held
 * while the mail is sent. The claim counts as an attempt, with any outcome.
 */
export async function claimMail<T extends MailedTable>(
  db: Database,
  table: T,
): Promise<MailedRow<T> | undefined> {
  const { rows } = await sql<MailedRow<T>>`
    UPDATE ${sql.table(table)}
    SET attempts = attempts + 1, next_at = now() + make_interval(secs => ${LEASE_S})
    WHERE id = (
      SELECT id FROM ${sql.table(table)}
      WHERE mailed_at IS NULL AND parked_at IS NULL AND next_at <= now()
      ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING *`.execute(db);
  return rows[0];
}

export async function markMailed(db: Database, table: MailedTable, id: string): Promise<void> {
  await sql`UPDATE ${sql.table(table)} SET mailed_at = now() WHERE id = ${id}`.execute(db);
}

/**
 * Postpones a row until its next attempt, or parks it.
 * @param isOwnFault the mail itself was refused, so other rows may succeed
 * @returns whether the row was parked
 */
export async function postponeMail(
  db: Database,
  table: MailedTable,
  { id, attempts }: ClaimedRow,
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
