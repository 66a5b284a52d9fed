import { setTimeout as sleep } from 'node:timers/promises';
import { sql, type Transaction } from 'kysely';
import type { MailQueue } from '../mail/mail-queue.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { createAttempts, networkOf } from './attempts.ts';
import { writeAudit } from './audit.ts';
import { erasureOf } from './close-account.ts';
import { issueMailToken, useMailToken } from './mail-tokens.ts';
import {
  accountClosedMail,
  alreadySignedUpMail,
  passwordChangedMail,
  resetMail,
  verificationMail,
} from './mails.ts';
import { insertUser } from './new-user.ts';
import { createPasswordAttempts, type Limited } from './password-attempts.ts';
import type { Passwords } from './passwords.ts';
import { lockUser, type UserRow } from './sessions.ts';
import { enter, type SignedIn } from './sign-in.ts';

const HOUR_MS = 3_600_000;
/** Attempts that pass, by what they are counted for; those at passwords are counted apart. */
export const ATTEMPT_LIMITS = {
  signUpFromNetwork: { max: 20, windowMs: HOUR_MS },
  mailFromNetwork: { max: 30, windowMs: HOUR_MS },
  /** Mails that strangers can have sent to one address. */
  mailToUser: { max: 5, windowMs: HOUR_MS },
} as const;

/**
 * A sign-up takes so long after its password was hashed: a new user costs a commit that a known one
 * does not. While the database is slower than that, the time tells again.
 */
export const SIGN_UP_MIN_MS = 100;

export type PasswordChecked =
  | { readonly kind: 'ok' }
  /** It is another one. */
  | { readonly kind: 'refused' }
  | Limited;

export type Taken = { readonly kind: 'ok' } | Limited;

/**
 * People who sign in. Methods throw PasswordsBusyError, and what the database says. Mails leave
 * after the answer: its time does not tell who has an account.
 */
export interface Users {
  /** The same for a known address: its owner is told by mail, the caller learns nothing. */
  signUp(wanted: {
    readonly email: string;
    readonly password: string;
    readonly accountName: string | undefined;
    readonly address: string;
  }): Promise<Taken>;
  verifyEmail(token: string): Promise<boolean>;
  resendVerification(email: string, address: string): Promise<Taken>;
  signIn(email: string, password: string, address: string): Promise<SignedIn>;
  requestReset(email: string, address: string): Promise<Taken>;
  /** Sets a password by a mailed token, which verifies the address too, and ends all sessions. */
  resetPassword(token: string, password: string, address: string): Promise<boolean>;
  /** Sets a password by the old one, and ends all sessions. */
  changePassword(
    userId: string,
    old: string,
    password: string,
    address: string,
  ): Promise<PasswordChecked>;
  /** Whether this is the user's password: asked again before what cannot be undone. */
  checkPassword(userId: string, password: string, address: string): Promise<PasswordChecked>;
}

export interface UsersOptions {
  readonly db: Database;
  readonly mails: MailQueue;
  readonly passwords: Passwords;
  readonly publicUrl: string;
}

/** Opens the users. E-mail addresses are compared in lower case. */
export function createUsers({ db, mails, passwords, publicUrl }: UsersOptions): Users {
  const passwordAttempts = createPasswordAttempts(db);
  const signUps = createAttempts(ATTEMPT_LIMITS.signUpFromNetwork);
  const mailsFrom = createAttempts(ATTEMPT_LIMITS.mailFromNetwork);
  const mailsTo = createAttempts(ATTEMPT_LIMITS.mailToUser);

  const findUser = (email: string) =>
    db
      .selectFrom('users as u')
      .innerJoin('accounts as a', 'a.id', 'u.account_id')
      .select(['u.id', 'u.email', 'u.email_verified_at', 'u.password_hash', 'a.closed_at'])
      .where('u.email', '=', email)
      .executeTakeFirst();
  /** Counts a request for a mail. @returns what to answer instead of sending one */
  const limitMail = (email: string, address: string): Limited | undefined => {
    const waitS = mailsFrom.take(networkOf(address)) || mailsTo.take(email);
    return waitS > 0 ? { kind: 'limited', retryAfterS: waitS } : undefined;
  };
  const mailVerification = (user: Pick<UserRow, 'id' | 'email'>) =>
    mails.add(async () => {
      const token = await issueMailToken(db, user.id, 'verify_email');
      return verificationMail(user.email, publicUrl, token);
    });
  const mailKnownUser = (email: string) =>
    mails.add(async () => {
      const user = await findUser(email);
      if (user === undefined) return undefined;
      return user.closed_at === null
        ? alreadySignedUpMail(email, publicUrl)
        : accountClosedMail(email, publicUrl, erasureOf(user.closed_at));
    });
  /** Whether this is the password of a user who is signed in; counted as at the sign-in. */
  const askAgain = async (
    userId: string,
    password: string,
    address: string,
  ): Promise<{ readonly kind: 'ok'; readonly hash: string } | { kind: 'refused' } | Limited> => {
    const user = await db
      .selectFrom('users')
      .select(['email', 'password_hash'])
      .where('id', '=', userId)
      .executeTakeFirst();
    const limited = await passwordAttempts.take(user?.email ?? userId, address);
    if (limited !== undefined) return limited;
    const isRight = await passwords.verify(password, user?.password_hash);
    if (user === undefined || !isRight) return { kind: 'refused' };
    passwordAttempts.wasRight(user.email, address);
    return { kind: 'ok', hash: user.password_hash };
  };

  return {
    async signUp({ email: given, password, accountName, address }) {
      const email = given.toLowerCase();
      const waitS = signUps.take(networkOf(address));
      if (waitS > 0) return { kind: 'limited', retryAfterS: waitS };
      const hash = await passwords.hash(password);
      const wanted = { email, hash, accountName: accountName ?? email, address };
      const [user] = await Promise.all([insertUser(db, wanted), sleep(SIGN_UP_MIN_MS)]);
      if (user !== undefined) mailVerification(user);
      else if (mailsTo.take(email) === 0) mailKnownUser(email);
      return { kind: 'ok' };
    },

    verifyEmail: (token) =>
      db.transaction().execute(async (tx) => {
        const userId = await useMailToken(tx, token, 'verify_email');
        const user = userId === undefined ? undefined : await lockUser(tx, userId);
        if (user === undefined) return false;
        await setVerified(tx, user);
        return true;
      }),

    async resendVerification(given, address) {
      const email = given.toLowerCase();
      const limited = limitMail(email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(email);
      if (user?.email_verified_at === null && user.closed_at === null) mailVerification(user);
      return { kind: 'ok' };
    },

    async signIn(given, password, address) {
      const email = given.toLowerCase();
      const limited = await passwordAttempts.take(email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(email);
      const isRight = await passwords.verify(password, user?.password_hash);
      if (user === undefined || !isRight) return { kind: 'refused' };
      passwordAttempts.wasRight(email, address);
      return db.transaction().execute((tx) => enter(tx, user, address));
    },

    async requestReset(given, address) {
      const email = given.toLowerCase();
      const limited = limitMail(email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(email);
      if (user === undefined) return { kind: 'ok' };
      mails.add(async () => {
        if (user.closed_at !== null) {
          return accountClosedMail(email, publicUrl, erasureOf(user.closed_at));
        }
        const token = await issueMailToken(db, user.id, 'reset_password');
        return resetMail(email, publicUrl, token);
      });
      return { kind: 'ok' };
    },

    async resetPassword(token, password, address) {
      const hash = await passwords.hash(password);
      const email = await db.transaction().execute(async (tx) => {
        const userId = await useMailToken(tx, token, 'reset_password');
        const user = userId === undefined ? undefined : await lockUser(tx, userId);
        if (user === undefined) return undefined;
        await setPassword(tx, user, hash, address);
        // The token came by mail to this address.
        if (user.email_verified_at === null) await setVerified(tx, user, address);
        return user.email;
      });
      if (email === undefined) return false;
      passwordAttempts.forgetUser(email);
      mails.add(async () => passwordChangedMail(email, publicUrl));
      return true;
    },

    async changePassword(userId, old, password, address) {
      const asked = await askAgain(userId, old, address);
      if (asked.kind !== 'ok') return asked;
      const hash = await passwords.hash(password);
      const email = await db.transaction().execute(async (tx) => {
        const user = await lockUser(tx, userId);
        if (user?.password_hash !== asked.hash) return undefined;
        await setPassword(tx, user, hash, address);
        return user.email;
      });
      if (email === undefined) return { kind: 'refused' };
      mails.add(async () => passwordChangedMail(email, publicUrl));
      return { kind: 'ok' };
    },

    async checkPassword(userId, password, address) {
      const asked = await askAgain(userId, password, address);
      return asked.kind === 'ok' ? { kind: 'ok' } : asked;
    },
  };
}

async function setPassword(
  tx: Transaction<Tables>,
  user: UserRow,
  hash: string,
  address: string,
): Promise<void> {
  await tx.updateTable('users').set({ password_hash: hash }).where('id', '=', user.id).execute();
  await tx.deleteFrom('sessions').where('user_id', '=', user.id).execute();
  await tx.deleteFrom('mail_tokens').where('user_id', '=', user.id).execute();
  await writeAudit(tx, {
    accountId: user.account_id,
    actor: `user:${user.id}`,
    action: 'password.changed',
    address,
  });
}

async function setVerified(
  tx: Transaction<Tables>,
  user: UserRow,
  address?: string,
): Promise<void> {
  await tx
    .updateTable('users')
    .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
    .where('id', '=', user.id)
    .execute();
  await writeAudit(tx, {
    accountId: user.account_id,
    actor: `user:${user.id}`,
    action: 'email.verified',
    address,
  });
}
