import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { hashToken, newToken } from './secret-token.ts';

/** A session ends after this, used or not, and after this without use. */
export const SESSION_MAX_S = 14 * 86_400;
export const SESSION_IDLE_S = 86_400;
/** Sessions of one user; with one more the oldest ends. */
const SESSIONS_PER_USER_MAX = 20;

/** A signed-in user. */
export interface Session {
  readonly userId: string;
  readonly accountId: string;
  readonly email: string;
  readonly isVerified: boolean;
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

/** The sessions' table. */
export interface Sessions {
  /** @returns the token for the cookie, shown once, and the session */
  begin(
    userId: string,
    address: string,
  ): Promise<{ readonly token: string; readonly session: Session }>;
  find(token: string): Promise<Session | undefined>;
  end(token: string): Promise<void>;
}

/** Opens the table. Methods throw what the database says. */
export function createSessions(db: Database): Sessions {
  const find = async (token: string): Promise<Session | undefined> => {
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
    return {
      userId: row.id,
      accountId: row.account_id,
      email: row.email,
      isVerified: row.email_verified_at !== null,
      csrfToken: row.csrf_token,
      expiresAt: row.expires_at,
    };
  };
  return {
    async begin(userId, address) {
      const token = newToken();
      await db
        .insertInto('sessions')
        .values({
          hash: hashToken(token),
          user_id: userId,
          csrf_token: newToken(),
          address,
          expires_at: new Date(Date.now() + SESSION_MAX_S * 1_000),
        })
        .execute();
      await sql`DELETE FROM sessions WHERE user_id = ${userId} AND hash NOT IN (
        SELECT hash FROM sessions WHERE user_id = ${userId}
        ORDER BY created_at DESC LIMIT ${SESSIONS_PER_USER_MAX})`.execute(db);
      return { token, session: (await find(token))! };
    },
    find,
    async end(token) {
      await db.deleteFrom('sessions').where('hash', '=', hashToken(token)).execute();
    },
  };
}
