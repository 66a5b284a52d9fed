import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Attempts allowed per window, over all processes and restarts. Addresses count by network. */
export const ATTEMPT_LIMITS = {
  signUpFromNetwork: { max: 20, windowMs: HOUR_MS },
  mailFromNetwork: { max: 30, windowMs: HOUR_MS },
  /** Mails that unauthenticated callers can trigger to one address. */
  mailToUser: { max: 5, windowMs: HOUR_MS },
  /** Mails of invitations that the members of an account send. */
  invitationsOfAccount: { max: 100, windowMs: 24 * HOUR_MS },
  /** Wrong passwords for a user from one network, so that the user can still sign in from elsewhere. */
  passwordOfUser: { max: 10, windowMs: 15 * MINUTE_MS },
  /** Passwords for all users from one network. */
  passwordFromNetwork: { max: 50, windowMs: 15 * MINUTE_MS },
  /** Wrong passwords for a user from everywhere, against an attacker with many networks. */
  passwordOfUserEverywhere: { max: 100, windowMs: 24 * HOUR_MS },
  /**
   * Wrong codes of an authenticator, from everywhere: only who has the password or a session can
   * try any. Three codes of a million are right at a time: after 12 years of 50 attempts a day, the
   * odds of having found one are even.
   */
  codeOfUser: { max: 10, windowMs: 15 * MINUTE_MS },
  codeOfUserInADay: { max: 50, windowMs: 24 * HOUR_MS },
  /** Wrong recovery codes, apart from the others: they cannot be guessed, and end a lock-out. */
  recoveryCodeOfUser: { max: 10, windowMs: 15 * MINUTE_MS },
} as const;

type LimitName = keyof typeof ATTEMPT_LIMITS;
/** A limit, and what it counts for. */
type Counted = readonly [limit: LimitName, subject: string];

/** Windows that are remembered; beyond that, those that end first are forgotten. */
export const ATTEMPT_ROWS_MAX = 500_000;
/** Rows deleted by one statement. */
const BATCH_ROWS = 10_000;

/** Too many attempts. */
export type Limited = { readonly kind: 'limited'; readonly retryAfterS: number };

export type Attempts = ReturnType<typeof createAttempts>;

/**
 * Counts attempts in PostgreSQL, in windows that begin at the first attempt. Counting comes before the
 * attempt, so concurrent attempts of several processes do not exceed a limit. Methods throw any
 * database error.
 */
export function createAttempts(db: Database) {
  const take = async ([name, subject]: Counted): Promise<number> => {
    const { max, windowMs } = ATTEMPT_LIMITS[name];
    const { rows } = await sql<{ count: number; left_s: number }>`
      INSERT INTO attempts AS a (key, count, ends_at)
      VALUES (${keyOf([name, subject])}, 1, now() + make_interval(secs => ${windowMs / 1_000}))
      ON CONFLICT (key) DO UPDATE SET
        count = CASE WHEN a.ends_at > now() THEN a.count + 1 ELSE 1 END,
        ends_at = CASE WHEN a.ends_at > now() THEN a.ends_at ELSE excluded.ends_at END
      RETURNING count, greatest(1, ceil(extract(epoch FROM ends_at - now())))::int AS left_s`.execute(
      db,
    );
    const { count, left_s: leftS } = rows[0]!;
    return count <= max ? 0 : leftS;
  };
  return {
    /**
     * Counts an attempt under several limits, in this order: one that is refused under a limit does
     * not count under the next. @returns the refusal; undefined if the attempt is allowed
     */
    async take(...counted: readonly Counted[]): Promise<Limited | undefined> {
      for (const one of counted) {
        const retryAfterS = await take(one);
        if (retryAfterS > 0) return { kind: 'limited', retryAfterS };
      }
      return undefined;
    },
    /** Takes back one attempt that should not have counted. */
    async giveBack(...counted: readonly Counted[]): Promise<void> {
      await sql`UPDATE attempts SET count = count - 1
        WHERE key = ANY (${counted.map(keyOf)}::bytea[])`.execute(db);
    },
    /** Takes back all attempts. */
    async forget(...counted: readonly Counted[]): Promise<void> {
      await sql`DELETE FROM attempts
        WHERE key = ANY (${counted.map(keyOf)}::bytea[])`.execute(db);
    },
  };
}

/** Hashed, so that the table does not list the addresses that someone tried. */
function keyOf([name, subject]: Counted): Buffer {
  return createHash('sha256').update(`${name}\n${subject}`).digest();
}

/** Deletes ended windows, and those beyond the bound. @throws any database error */
export async function pruneAttempts(db: Database, rowsMax = ATTEMPT_ROWS_MAX): Promise<void> {
  for (let isMore = true; isMore; ) {
    const { numAffectedRows = 0n } = await sql`
      DELETE FROM attempts WHERE key IN (
        SELECT key FROM attempts
        WHERE ends_at <= now()
          OR ends_at <= (SELECT ends_at FROM attempts ORDER BY ends_at DESC OFFSET ${rowsMax} LIMIT 1)
        ORDER BY ends_at LIMIT ${BATCH_ROWS} FOR UPDATE SKIP LOCKED)`.execute(db);
    isMore = numAffectedRows >= BATCH_ROWS;
  }
}
