import { sql, type Transaction } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { hashToken, newToken } from './secret-token.ts';

/** A session ends after this, used or not, and after this without use. */
export const SESSION_MAX_S = 14 * 86_400;
export const SESSION_IDLE_S = 86_400;
/** Sessions of one user; with one more the oldest ends. */
export const SESSIONS_PER_USER_MAX = 20;

/** A signed-in user. */
export interface Session {
  /** What its token is stored as; it names the session in other tables. */
  readonly hash: Buffer;
  readonly userId: string;
  readonly accountId: string;
  readonly email: string;
  readonly isVerified: boolean;
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

/** A session that has just begun; the token is for the cookie, and shown once. */
export interface SessionBegun {
  readonly token: string;
  readonly session: Session;
}

/** The sessions' table. */
export interface Sessions {
  /** @throws also when there is no such user */
  begin(userId: string, address: string): Promise<SessionBegun>;
  find(token: string): Promise<Session | undefined>;
  end(token: string): Promise<void>;
}

/** Opens the table. Methods throw what the database says. */
export function createSessions(db: Database): Sessions {
  return {
    begin: (userId, address) =>
      db.transaction().execute(async (tx) => {
        const user = await lockUser(tx, userId);
        if (user === undefined) throw new Error(`There is no user ${userId}.`);
        return beginSession(tx, user, address);
      }),

    async find(token) {
      const hash = hashToken(token);
      const row = await db
        .selectFrom('sessions as s')
        .innerJoin('users as u', 'u.id', 's.user_id')
        .select(['u.id', 'u.account_id', 'u.email', 'u.email_verified_at'])
        .select(['s.csrf_token', 's.expires_at', 's.last_seen_at'])
        .where('s.hash', '=', hash)
        .where('s.expires_at', '>', sql<Date>`now()`)
        .where('s.last_seen_at', '>', sql<Date>`now() - make_interval(secs => ${SESSION_IDLE_S})`)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      // To the minute: a session that is in use costs no write on each request.
      if (Date.now() - row.last_seen_at.getTime() > 60_000) {
        await db
          .updateTable('sessions')
          .set({ last_seen_at: sql<Date>`now()` })
          .where('hash', '=', hash)
          .execute();
      }
      return sessionOf(row, { ...row, hash });
    },

    async end(token) {
      await db.deleteFrom('sessions').where('hash', '=', hashToken(token)).execute();
    },
  };
}

/** What is read of a user to begin a session. */
export interface UserRow {
  readonly id: string;
  readonly account_id: string;
  readonly email: string;
  readonly email_verified_at: Date | null;
  readonly password_hash: string;
}

/**
 * Locks a user until the transaction ends: its sign-ins and changes of its password go one after
 * another. @returns the row as the one before has left it
 */
export function lockUser(tx: Transaction<Tables>, userId: string): Promise<UserRow | undefined> {
  return tx
    .selectFrom('users')
    .select(['id', 'account_id', 'email', 'email_verified_at', 'password_hash'])
    .where('id', '=', userId)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

/** Begins a session of a user that this transaction has locked; the oldest of 21 ends. */
export async function beginSession(
  tx: Transaction<Tables>,
  user: UserRow,
  address: string,
): Promise<SessionBegun> {
  const token = newToken();
  const hash = hashToken(token);
  const row = await tx
    .insertInto('sessions')
    .values({
      hash,
      user_id: user.id,
      csrf_token: newToken(),
      address,
      // now() is the transaction's beginning: whoever waited long for the lock would be the oldest.
      created_at: sql<Date>`clock_timestamp()`,
      expires_at: new Date(Date.now() + SESSION_MAX_S * 1_000),
    })
    .returning(['csrf_token', 'expires_at'])
    .executeTakeFirstOrThrow();
  await sql`DELETE FROM sessions WHERE hash IN (
    SELECT hash FROM sessions WHERE user_id = ${user.id}
    ORDER BY created_at DESC OFFSET ${SESSIONS_PER_USER_MAX})`.execute(tx);
  return { token, session: sessionOf(user, { ...row, hash }) };
}

function sessionOf(
  user: Pick<UserRow, 'id' | 'account_id' | 'email' | 'email_verified_at'>,
  row: { readonly hash: Buffer; readonly csrf_token: string; readonly expires_at: Date },
): Session {
  return {
    hash: row.hash,
    userId: user.id,
    accountId: user.account_id,
    email: user.email,
    isVerified: user.email_verified_at !== null,
    csrfToken: row.csrf_token,
    expiresAt: row.expires_at,
  };
}
