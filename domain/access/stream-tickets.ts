import { createHash, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { StatementPool } from '../../lib/postgres/statement-pool.ts';
import type { Role } from './roles.ts';
import { isSchemeId } from './scheme-rows.ts';

const PREFIX = 'pit_';
/** A browser opens its socket right after the answer with the ticket. */
const TICKET_LIFE_S = 30;
/** 256 bits: not guessable within the life of a ticket. */
const RANDOM_BYTES = 32;
const FORM = /^pit_[0-9A-Za-z_-]{43}$/;
/** Open tickets of an account; one more voids the oldest. Exact except for parallel requests. */
export const TICKETS_PER_ACCOUNT_MAX = 1_000;
/** Expired tickets that one call deletes. */
const CLEARED_MAX = 100;

/** A ticket that was just redeemed. */
export interface RedeemedTicket {
  readonly accountId: string;
  /** Key or authentication scheme; undefined when a session requested the ticket. */
  readonly keyId: string | undefined;
  /** Hash of the sign-in that requested the ticket; undefined when a key did. */
  readonly sessionHash?: Buffer | undefined;
  /** Role of the user who signed in; undefined when a key requested the ticket. */
  readonly role?: Role | undefined;
  /** When the token ends that requested the ticket, Unix ms; undefined when no token did. */
  readonly tokenEndsAtMs?: number | undefined;
}

/**
 * Makes a single-use ticket for a browser's socket, valid for 30 s.
 * @param holder the key or the sign-in that requests it
 * @returns the ticket, of which only the hash is stored
 * @throws any database error, also when the account or key no longer exists
 */
export async function issueStreamTicket(
  db: Database,
  holder: RedeemedTicket,
): Promise<{ readonly ticket: string; readonly expiresAt: Date }> {
  const { keyId = null, sessionHash = null, role = null, tokenEndsAtMs } = holder;
  const isScheme = keyId !== null && isSchemeId(keyId);
  const endsAt = tokenEndsAtMs === undefined ? null : new Date(tokenEndsAtMs);
  const ticket = `${PREFIX}${randomBytes(RANDOM_BYTES).toString('base64url')}`;
  // Rows that another call is deleting are skipped, so that two calls never wait for each other.
  // Rows are found first and locked then: a lock below OFFSET would lock all tickets of the account.
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
    INSERT INTO stream_tickets (hash, account_id, key_id, scheme_id, credential_ends_at,
      session_hash, role, expires_at)
    VALUES (${hashTicket(ticket)}, ${holder.accountId}, ${isScheme ? null : keyId},
      ${isScheme ? keyId : null}, ${endsAt}, ${sessionHash}, ${role},
      clock_timestamp() + make_interval(secs => ${TICKET_LIFE_S}))
    RETURNING expires_at`.execute(db);
  return { ticket, expiresAt: rows[0]!.expires_at };
}

/**
 * Redeems a ticket: only one of many concurrent attempts succeeds. An expired ticket is deleted too.
 * @returns undefined = malformed, unknown, used or expired
 * @throws any database error
 */
export async function redeemStreamTicket(
  pool: StatementPool,
  ticket: string,
): Promise<RedeemedTicket | undefined> {
  if (!FORM.test(ticket)) return undefined;
  const [row] = await pool.query<{
    account_id: string;
    key_id: string | null;
    session_hash: Buffer | null;
    role: Role | null;
    ends_at: Date | null;
    open: boolean;
  }>(
    `DELETE FROM stream_tickets WHERE hash = $1
     RETURNING account_id, coalesce(key_id, scheme_id) AS key_id, session_hash, role,
       credential_ends_at AS ends_at, expires_at > clock_timestamp() AS open`,
    [hashTicket(ticket)],
  );
  if (row?.open !== true) return undefined;
  return {
    accountId: row.account_id,
    keyId: row.key_id ?? undefined,
    sessionHash: row.session_hash ?? undefined,
    role: row.role ?? undefined,
    tokenEndsAtMs: row.ends_at?.getTime(),
  };
}

function hashTicket(ticket: string): Buffer {
  return createHash('sha256').update(ticket).digest();
}
