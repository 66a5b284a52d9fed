import { type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { assertInTurn, inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { Role } from '../access/roles.ts';
import { writeAudit } from './audit.ts';
import { hashToken, newToken } from './secret-token.ts';
import type { Visitor } from './visitor.ts';

/** A session ends after the first time in any case, and after the second without use. */
export const SESSION_MAX_S = 14 * 86_400;
export const SESSION_IDLE_S = 86_400;
/** Sessions per user; one more ends the oldest. */
export const SESSIONS_PER_USER_MAX = 20;
/** For this long after a code, a session need not prove the second factor again. */
export const FRESH_S = 600;

const IN_FORCE = sql<boolean>`s.expires_at > now()
  AND s.last_seen_at > now() - make_interval(secs => ${SESSION_IDLE_S})`;
/** The name of a session in lists: the token cannot be derived from this part of its hash. */
const ID = sql<string>`'ses_' || left(encode(s.hash, 'hex'), 12)`;

/** A signed-in user. */
export type Session = ReturnType<typeof sessionOf>;

/** A new session; the token is for the cookie and shown once. */
export type SessionBegun = { readonly token: string; readonly session: Session };

export type Sessions = ReturnType<typeof createSessions>;

/** Methods throw any database error. */
export function createSessions(db: Database) {
  return {
    ...createSessionList(db),

    /** @throws also if the user does not exist */
    begin: (userId: string, address: string): Promise<SessionBegun> =>
      inTurn(db, userId, async (tx) => {
        const user = await lockUser(tx, userId);
        if (user === undefined) throw new Error(`There is no user ${userId}.`);
        return beginSession(tx, user, { address }, NO_FACTOR);
      }),

    async find(token: string): Promise<Session | undefined> {
      const hash = hashToken(token);
      const row = await db
        .selectFrom('sessions as s')
        .innerJoin('users as u', 'u.id', 's.user_id')
        .leftJoin('second_factors as f', 'f.user_id', 'u.id')
        .select(['u.id', 'u.account_id', 'u.email', 'u.email_verified_at', 'u.role'])
        .select(['s.csrf_token', 's.expires_at', 's.last_seen_at'])
        .select([
          sql<boolean>`f.confirmed_at IS NOT NULL`.as('isOn'),
          sql<boolean>`coalesce(
            s.second_factor_at > now() - make_interval(secs => ${FRESH_S}), false)`.as('isFresh'),
        ])
        .where('s.hash', '=', hash)
        .where(IN_FORCE)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      // To the minute, so that not every request costs a write.
      if (Date.now() - row.last_seen_at.getTime() > 60_000) {
        await db
          .updateTable('sessions')
          .set({ last_seen_at: sql<Date>`now()` })
          .where('hash', '=', hash)
          // Of many requests at once, one writes.
          .where('last_seen_at', '<', sql<Date>`now() - interval '1 minute'`)
          .execute();
      }
      return sessionOf(row, { ...row, hash }, { isOn: row.isOn, isFresh: row.isFresh });
    },

    async end(token: string): Promise<void> {
      await db.deleteFrom('sessions').where('hash', '=', hashToken(token)).execute();
    },
  };
}

/** The name of a session in lists, and in links that end with the session. */
export function sessionIdOf({ hash }: Pick<Session, 'hash'>): string {
  return `ses_${hash.toString('hex').slice(0, 12)}`;
}

/** The role of the user of an account who is signed in by a session; undefined = none is. */
export async function roleOfSession(
  db: Database,
  accountId: string,
  sessionId: string,
): Promise<Role | undefined> {
  const row = await db
    .selectFrom('sessions as s')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .select('u.role')
    .where('u.account_id', '=', accountId)
    .where(ID, '=', sessionId)
    .where(IN_FORCE)
    .executeTakeFirst();
  return row?.role;
}

/** The columns of a user that a session needs. */
const USER_COLUMNS = [
  'id',
  'account_id',
  'email',
  'email_verified_at',
  'role',
  'password_hash',
  'last_sign_in_at',
] as const;
export type UserRow = Readonly<Pick<Selectable<Tables['users']>, (typeof USER_COLUMNS)[number]>>;

/**
 * Locks a user until the transaction ends, so that sign-ins and password changes are serialised.
 * The transaction must be one of `inTurn`. @returns the row as the previous transaction left it
 */
export function lockUser(tx: Transaction<Tables>, userId: string): Promise<UserRow | undefined> {
  assertInTurn(tx);
  return tx
    .selectFrom('users')
    .select(USER_COLUMNS)
    .where('id', '=', userId)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

function createSessionList(db: Database) {
  return {
    /** Sessions of a user, newest first; at most 20. */
    list: (session: Session) =>
      db
        .selectFrom('sessions as s')
        .select(['s.address', 's.user_agent as userAgent', 's.created_at as createdAt'])
        .select(['s.last_seen_at as lastSeenAt', 's.expires_at as expiresAt', ID.as('id')])
        .select(sql<boolean>`s.hash = ${session.hash}`.as('current'))
        .where('s.user_id', '=', session.userId)
        .where(IN_FORCE)
        .orderBy('s.created_at', 'desc')
        .execute(),

    /** Ends one session of a user. @returns false if the user has no session of this id */
    async endOne({ userId, accountId }: Session, id: string, address: string): Promise<boolean> {
      const gone = await db
        .deleteFrom('sessions as s')
        .where('s.user_id', '=', userId)
        .where(ID, '=', id)
        .executeTakeFirst();
      if (gone.numDeletedRows === 0n) return false;
      const entry = { accountId, actor: `user:${userId}`, address };
      await writeAudit(db, { ...entry, action: 'session.ended', target: id });
      return true;
    },

    /** Ends all sessions of the user but this one. @returns how many */
    endOthers: (session: Session, address: string): Promise<number> =>
      inTurn(db, session.accountId, (tx) => endOtherSessions(tx, session, address)),
  };
}

export async function endOtherSessions(
  tx: Transaction<Tables>,
  { userId, accountId, hash }: Session,
  address: string,
): Promise<number> {
  const gone = await tx
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where('hash', '<>', hash)
    .executeTakeFirst();
  const ended = Number(gone.numDeletedRows);
  const entry = { accountId, actor: `user:${userId}`, address };
  await writeAudit(tx, { ...entry, action: 'sessions.ended', detail: { ended } });
  return ended;
}

/** State of the second factor in a session. */
export interface FactorState {
  readonly isOn: boolean;
  /** Whether the session proved it within the last 10 minutes. */
  readonly isFresh: boolean;
}

const NO_FACTOR: FactorState = { isOn: false, isFresh: false };

/** Begins a session of a user that this transaction has locked; the oldest of 21 ends. */
export async function beginSession(
  tx: Transaction<Tables>,
  user: UserRow,
  { address, userAgent = '' }: Visitor,
  factor: FactorState,
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
      user_agent: userAgent,
      second_factor_at: factor.isFresh ? sql<Date>`clock_timestamp()` : null,
      // now() is the start of the transaction: a session that waited for the lock would be the oldest.
      created_at: sql<Date>`clock_timestamp()`,
      expires_at: new Date(Date.now() + SESSION_MAX_S * 1_000),
    })
    .returning(['csrf_token', 'expires_at'])
    .executeTakeFirstOrThrow();
  await sql`DELETE FROM sessions WHERE hash IN (
    SELECT hash FROM sessions WHERE user_id = ${user.id}
    ORDER BY created_at DESC OFFSET ${SESSIONS_PER_USER_MAX})`.execute(tx);
  return { token, session: sessionOf(user, { ...row, hash }, factor) };
}

function sessionOf(
  user: Omit<UserRow, 'password_hash' | 'last_sign_in_at'>,
  row: { readonly hash: Buffer; readonly csrf_token: string; readonly expires_at: Date },
  secondFactor: FactorState,
) {
  return {
    /** Hash of the token; identifies the session in other tables. */
    hash: row.hash,
    userId: user.id,
    accountId: user.account_id,
    email: user.email,
    role: user.role as Role,
    isVerified: user.email_verified_at !== null,
    csrfToken: row.csrf_token,
    expiresAt: row.expires_at,
    secondFactor,
  };
}
