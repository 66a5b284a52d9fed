import { sql, type Transaction } from 'kysely';
import { newId } from '../access/id.ts';
import type { Log } from '../log.ts';
import type { Mail, Mailer } from '../mail/mailer.ts';
import { type Database, isDuplicate } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { createAttempts } from './attempts.ts';
import { writeAudit } from './audit.ts';
import { alreadySignedUpMail, passwordChangedMail, resetMail, verificationMail } from './mails.ts';
import type { Passwords } from './passwords.ts';
import { hashToken, newToken } from './secret-token.ts';
import type { Session, Sessions } from './sessions.ts';

const MINUTE_MS = 60_000;
/** Attempts that pass, by what they are counted for. */
export const ATTEMPT_LIMITS = {
  /** Wrong passwords for one user from one address: nobody is locked out from elsewhere. */
  signInOfUser: { max: 10, windowMs: 15 * MINUTE_MS },
  signInFromAddress: { max: 50, windowMs: 15 * MINUTE_MS },
  signUpFromAddress: { max: 20, windowMs: 60 * MINUTE_MS },
  mailFromAddress: { max: 30, windowMs: 60 * MINUTE_MS },
  /** Mails that strangers can have sent to one address. */
  mailToUser: { max: 5, windowMs: 60 * MINUTE_MS },
} as const;

const TOKEN_LIFE_S = { verify_email: 86_400, reset_password: 1_800 } as const;

export interface Limited {
  readonly kind: 'limited';
  readonly retryAfterS: number;
}

export type SignedIn =
  | { readonly kind: 'ok'; readonly token: string; readonly session: Session }
  /** No such user, or another password: one and the same. */
  | { readonly kind: 'refused' }
  | Limited;

/** People who sign in. Methods throw PasswordsBusyError, and what the database says. */
export interface Users {
  /** The same for a known address: its owner is told by mail, the caller learns nothing. */
  signUp(wanted: {
    readonly email: string;
    readonly password: string;
    readonly accountName: string | undefined;
    readonly address: string;
  }): Promise<{ readonly kind: 'ok' } | Limited>;
  verifyEmail(token: string): Promise<boolean>;
  resendVerification(email: string, address: string): Promise<{ readonly kind: 'ok' } | Limited>;
  signIn(email: string, password: string, address: string): Promise<SignedIn>;
  requestReset(email: string, address: string): Promise<{ readonly kind: 'ok' } | Limited>;
  /** Sets a password by a mailed token, and ends all sessions. */
  resetPassword(token: string, password: string, address: string): Promise<boolean>;
  /** Sets a password by the old one, and ends all sessions. */
  changePassword(userId: string, old: string, password: string, address: string): Promise<boolean>;
  /** Whether this is the user's password. */
  hasPassword(userId: string, password: string): Promise<boolean>;
}

export interface UsersOptions {
  readonly db: Database;
  readonly mailer: Mailer;
  readonly passwords: Passwords;
  readonly sessions: Sessions;
  readonly publicUrl: string;
  readonly log: Log;
}

/** The e-mail address of a token's user, for the password rules. */
export async function emailOfResetToken(db: Database, token: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('mail_tokens as t')
    .innerJoin('users as u', 'u.id', 't.user_id')
    .select('u.email')
    .where('t.hash', '=', hashToken(token))
    .where('t.purpose', '=', 'reset_password')
    .executeTakeFirst();
  return row?.email;
}

/** Opens the users. E-mail addresses are compared in lower case. */
export function createUsers(options: UsersOptions): Users {
  const { db, passwords, sessions, publicUrl, log } = options;
  const limits = Object.fromEntries(
    Object.entries(ATTEMPT_LIMITS).map(([name, limit]) => [name, createAttempts(limit)]),
  ) as Record<keyof typeof ATTEMPT_LIMITS, ReturnType<typeof createAttempts>>;

  /** A mail that cannot leave must not tell the caller that there is somebody to get it. */
  const mail = async (message: Mail) => {
    try {
      await options.mailer.send(message);
    } catch (error) {
      log.error({ err: error, subject: message.subject }, 'a mail was not taken');
    }
  };
  const mailToken = async (
    user: { readonly id: string; readonly email: string },
    purpose: keyof typeof TOKEN_LIFE_S,
  ) => {
    const token = newToken();
    const expiresAt = new Date(Date.now() + TOKEN_LIFE_S[purpose] * 1_000);
    await db
      .insertInto('mail_tokens')
      .values({ hash: hashToken(token), user_id: user.id, purpose, expires_at: expiresAt })
      .execute();
    const make = purpose === 'verify_email' ? verificationMail : resetMail;
    await mail(make(user.email, publicUrl, token));
  };
  const findUser = (email: string) =>
    db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst();
  /** Counts a request for a mail. @returns what to answer instead of sending one */
  const limitMail = (email: string, address: string): Limited | undefined => {
    const wait = Math.max(limits.mailFromAddress.take(address), limits.mailToUser.take(email));
    return wait > 0 ? { kind: 'limited', retryAfterS: wait } : undefined;
  };
  const setPassword = async (
    tx: Transaction<Tables>,
    user: { readonly id: string; readonly account_id: string },
    hash: string,
    address: string,
  ) => {
    await tx.updateTable('users').set({ password_hash: hash }).where('id', '=', user.id).execute();
    await tx.deleteFrom('sessions').where('user_id', '=', user.id).execute();
    await tx.deleteFrom('mail_tokens').where('user_id', '=', user.id).execute();
    await writeAudit(tx, {
      accountId: user.account_id,
      actor: `user:${user.id}`,
      action: 'password.changed',
      address,
    });
  };

  return {
    async signUp({ email: given, password, accountName, address }) {
      const email = given.toLowerCase();
      const wait = limits.signUpFromAddress.take(address);
      if (wait > 0) return { kind: 'limited', retryAfterS: wait };
      // Before anything is looked up, so that a known address takes as long.
      const hash = await passwords.hash(password);
      const user = await insertUser(db, {
        email,
        hash,
        accountName: accountName ?? email,
        address,
      });
      if (user !== undefined) await mailToken(user, 'verify_email');
      else if (limits.mailToUser.take(email) === 0) {
        await mail(alreadySignedUpMail(email, publicUrl));
      }
      return { kind: 'ok' };
    },

    verifyEmail: (token) =>
      db.transaction().execute(async (tx) => {
        const userId = await useToken(tx, token, 'verify_email');
        if (userId === undefined) return false;
        const user = await tx
          .updateTable('users')
          .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
          .where('id', '=', userId)
          .returning('account_id')
          .executeTakeFirstOrThrow();
        await writeAudit(tx, {
          accountId: user.account_id,
          actor: `user:${userId}`,
          action: 'email.verified',
        });
        return true;
      }),

    async resendVerification(given, address) {
      const email = given.toLowerCase();
      const limited = limitMail(email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(email);
      if (user?.email_verified_at === null) await mailToken(user, 'verify_email');
      return { kind: 'ok' };
    },

    async signIn(given, password, address) {
      const email = given.toLowerCase();
      const pair = `${email}\n${address}`;
      const wait = Math.max(limits.signInOfUser.take(pair), limits.signInFromAddress.take(address));
      if (wait > 0) return { kind: 'limited', retryAfterS: wait };
      const user = await findUser(email);
      const isRight = await passwords.verify(password, user?.password_hash);
      if (user === undefined || !isRight) return { kind: 'refused' };
      limits.signInOfUser.forget(pair);
      await db
        .updateTable('users')
        .set({ last_sign_in_at: sql<Date>`now()` })
        .where('id', '=', user.id)
        .execute();
      await writeAudit(db, {
        accountId: user.account_id,
        actor: `user:${user.id}`,
        action: 'session.begun',
        address,
      });
      return { kind: 'ok', ...(await sessions.begin(user.id, address)) };
    },

    async requestReset(given, address) {
      const email = given.toLowerCase();
      const limited = limitMail(email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(email);
      if (user !== undefined) await mailToken(user, 'reset_password');
      return { kind: 'ok' };
    },

    async resetPassword(token, password, address) {
      const hash = await passwords.hash(password);
      const email = await db.transaction().execute(async (tx) => {
        const userId = await useToken(tx, token, 'reset_password');
        if (userId === undefined) return undefined;
        const user = await tx
          .selectFrom('users')
          .select(['id', 'account_id', 'email'])
          .where('id', '=', userId)
          .executeTakeFirstOrThrow();
        await setPassword(tx, user, hash, address);
        return user.email;
      });
      if (email !== undefined) await mail(passwordChangedMail(email, publicUrl));
      return email !== undefined;
    },

    async changePassword(userId, old, password, address) {
      const user = await db
        .selectFrom('users')
        .selectAll()
        .where('id', '=', userId)
        .executeTakeFirst();
      if (user === undefined || !(await passwords.verify(old, user.password_hash))) return false;
      const hash = await passwords.hash(password);
      await db.transaction().execute((tx) => setPassword(tx, user, hash, address));
      await mail(passwordChangedMail(user.email, publicUrl));
      return true;
    },

    async hasPassword(userId, password) {
      const user = await db
        .selectFrom('users')
        .select('password_hash')
        .where('id', '=', userId)
        .executeTakeFirst();
      return passwords.verify(password, user?.password_hash);
    },
  };
}

/** Makes an account with its first user; undefined when the address is taken. */
async function insertUser(
  db: Database,
  wanted: {
    readonly email: string;
    readonly hash: string;
    readonly accountName: string;
    readonly address: string;
  },
): Promise<{ readonly id: string; readonly email: string } | undefined> {
  const { email, hash, accountName, address } = wanted;
  const accountId = newId('acc');
  const id = newId('usr');
  try {
    await db.transaction().execute(async (tx) => {
      await tx.insertInto('accounts').values({ id: accountId, name: accountName }).execute();
      await tx
        .insertInto('users')
        .values({ id, account_id: accountId, email, password_hash: hash })
        .execute();
      await writeAudit(tx, { accountId, actor: `user:${id}`, action: 'account.opened', address });
    });
    return { id, email };
  } catch (error) {
    if (isDuplicate(error)) return undefined;
    throw error;
  }
}

/** Uses up a mailed token. @returns whose it was */
async function useToken(
  tx: Transaction<Tables>,
  token: string,
  purpose: keyof typeof TOKEN_LIFE_S,
): Promise<string | undefined> {
  const row = await tx
    .deleteFrom('mail_tokens')
    .where('hash', '=', hashToken(token))
    .where('purpose', '=', purpose)
    .returning(['user_id', 'expires_at'])
    .executeTakeFirst();
  return row !== undefined && row.expires_at.getTime() > Date.now() ? row.user_id : undefined;
}
