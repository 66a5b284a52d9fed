import { createHash, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { QuickPool } from '../postgres/quick-pool.ts';

const PREFIX = 'pit_';
/** 256 bits: nobody guesses one in its 30 s. */
const RANDOM_BYTES = 32;
const FORM = /^pit_[0-9A-Za-z_-]{43}$/;
/** Open tickets of an account; one more and the oldest is void. Exact unless asked in parallel. */
export const TICKETS_PER_ACCOUNT_MAX = 1_000;
/** Expired tickets that one call clears away. */
const CLEARED_MAX = 100;

/** A ticket that was just redeemed. */
export interface RedeemedTicket {
  readonly accountId: string;
  /** undefined when a session asked for it. */
  readonly keyId: string | undefined;
  /** The sign-in that asked for it, as its table knows it; undefined when a key did. */
  readonly sessionHash?: Buffer | undefined;
}

/**
 * Makes a single-use ticket of 30 s for a browser's socket.
 * @param holder either the key or the sign-in that asks
 * @returns the ticket, which is stored only as its hash
 * @throws what the database says, also when account or key are gone
 */
export async function issueTicket(
  db: Database,
  holder: RedeemedTicket,
): Promise<{ readonly ticket: string; readonly expiresAt: Date }> {
  const ticket = `${PREFIX}${randomBytes(RANDOM_BYTES).toString('base64url')}`;
  // Rows that another call is clearing away are skipped: two never wait for each other. Found
  // first and locked then: a lock below OFFSET would take every ticket of the account.
  const { rows } = await sql<{ expires_at: Date }>`
    WITH expired AS (
      SELECT hash FROM stream_tickets WHERE expires_at <= now()
      LIMIT ${CLEARED_MAX} FOR UPDATE SKIP LOCKED
    ), beyond AS MATERIALIZED (
      SELECT hash FROM stream_tickets WHERE account_id = ${holder.accountId}
      ORDER BY expires_at DESC OFFSET ${TICKETS_PER_ACCOUNT_MAX - 1} LIMIT ${CLEARED_MAX}
    ), surplus AS (
      SELECT hash FROM stream_tickets WHERE hash IN (SELECT hash FROM beyond)
      FOR UPDATE SKIP LOCKED
    ), cleared AS (
      DELETE FROM stream_tickets
      WHERE hash IN (SELECT hash FROM expired) OR hash IN (SELECT hash FROM surplus)
    )
    INSERT INTO stream_tickets (hash, account_id, key_id, session_hash, expires_at)
    VALUES (${hashTicket(ticket)}, ${holder.accountId}, ${holder.keyId ?? null},
      ${holder.sessionHash ?? null}, clock_timestamp() + interval '30 seconds')
    RETURNING expires_at`.execute(db);
  return { ticket, expiresAt: rows[0]!.expires_at };
}

/**
 * Redeems a ticket: of many that try at once one gets it. A late one is gone all the same.
 * @returns undefined = malformed, unknown, used or expired
 * @throws what the database says
 */
export async function redeemTicket(
  pool: QuickPool,
  ticket: string,
): Promise<RedeemedTicket | undefined> {
  if (!FORM.test(ticket)) return undefined;
  const [row] = await pool.query<{
    account_id: string;
    key_id: string | null;
    session_hash: Buffer | null;
    open: boolean;
  }>(
    `DELETE FROM stream_tickets WHERE hash = $1
     RETURNING account_id, key_id, session_hash, expires_at > clock_timestamp() AS open`,
    [hashTicket(ticket)],
  );
  if (row?.open !== true) return undefined;
  return {
    accountId: row.account_id,
    keyId: row.key_id ?? undefined,
    sessionHash: row.session_hash ?? undefined,
  };
}

function hashTicket(ticket: string): Buffer {
  return createHash('sha256').update(ticket).digest();
}
