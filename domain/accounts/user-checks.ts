import type { Transaction } from 'kysely';
import type { MailQueue } from '../../lib/mail/mail-queue.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { networkOf } from '../access/network-of.ts';
import { noteAccountEvent } from '../access/security-events.ts';
import type { Attempts, Limited } from './attempts.ts';
import { writeAudit } from './audit.ts';
import { createPasswordLimiter } from './password-limiter.ts';
import type { Passwords } from './passwords.ts';
import type { SecondFactors } from './second-factor.ts';
import type { UserRow } from './sessions.ts';

export type PasswordChecked =
  | { readonly kind: 'ok' }
  /** The password is wrong. */
  | { readonly kind: 'refused' }
  | Limited;

/** The new password is easy to guess. */
export type Weak = { readonly kind: 'weak' };

export type AcceptedOrLimited = { readonly kind: 'ok' } | Limited;

export interface UsersDeps {
  readonly db: Database;
  readonly mails: MailQueue;
  readonly passwords: Passwords;
  readonly attempts: Attempts;
  readonly secondFactors: Pick<SecondFactors, 'isOn' | 'check'>;
  readonly publicUrl: string;
}

export type UsersState = ReturnType<typeof openUsersState>;

export function openUsersState(deps: UsersDeps) {
  return { ...deps, passwordLimiter: createPasswordLimiter(deps.db, deps.attempts) };
}

/** Checks the password of a user again, under the same limits as a sign-in. */
export async function checkAgain(
  { db, passwords, passwordLimiter }: UsersState,
  userId: string,
  password: string,
  address: string,
): Promise<
  | { readonly kind: 'ok'; readonly email: string; readonly hash: string }
  | { kind: 'refused' }
  | Limited
> {
  const user = await db
    .selectFrom('users')
    .select(['email', 'password_hash'])
    .where('id', '=', userId)
    .executeTakeFirst();
  const limited = await passwordLimiter.take(user?.email ?? userId, address);
  if (limited !== undefined) return limited;
  const isRight = await passwords.verify(password, user?.password_hash);
  if (user === undefined || !isRight) return { kind: 'refused' };
  await passwordLimiter.wasRight(user.email, address);
  return { kind: 'ok', email: user.email, hash: user.password_hash };
}

export function findUser(db: Database, email: string) {
  return db
    .selectFrom('users as u')
    .innerJoin('accounts as a', 'a.id', 'u.account_id')
    .select(['u.id', 'u.account_id', 'u.email', 'u.email_verified_at', 'u.password_hash'])
    .select('a.closed_at')
    .where('u.email', '=', email)
    .executeTakeFirst();
}

/** Counts a request for a mail. @returns the answer if no mail may be sent */
export function limitMail(
  { attempts }: UsersState,
  email: string,
  address: string,
): Promise<Limited | undefined> {
  return attempts.take(['mailFromNetwork', networkOf(address)], ['mailToUser', email]);
}

/**
 * Notes a wrong password or code for the audit log of the account that it was tried for. The sender is
 * not signed in, so no other record of the account shows the attempt.
 */
export function noteRefusedSignIn(
  { id, accountId }: { readonly id: string; readonly accountId: string },
  event: 'password_wrong' | 'code_wrong',
  address: string,
): void {
  const [action, actor] = ['sign_in.refused', 'anyone'];
  noteAccountEvent({ accountId, action, actor, event, target: id, address });
}

export function auditUser(tx: Transaction<Tables>, user: UserRow, action: string, address: string) {
  const { account_id: accountId, id } = user;
  return writeAudit(tx, { accountId, actor: `user:${id}`, action, address });
}
