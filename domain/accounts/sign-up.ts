import { setTimeout as sleep } from 'node:timers/promises';
import { sql, type Transaction } from 'kysely';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { networkOf } from '../access/network-of.ts';
import { erasureTime } from './account-closure.ts';
import type { Limited } from './attempts.ts';
import { issueMailToken, useMailToken, userOfToken } from './mail-tokens.ts';
import { accountClosedMail, alreadySignedUpMail, verificationMail } from './mails.ts';
import { insertUser } from './new-user.ts';
import { lockUser, type UserRow } from './sessions.ts';
import {
  type AcceptedOrLimited,
  auditUser,
  checkAgain,
  findUser,
  limitMail,
  noteRefusedSignIn,
  type UsersState,
  type Weak,
} from './user-checks.ts';

/**
 * Least duration of a sign-up after the password is hashed. A new user costs a commit that a known
 * one does not; while the database is slower than this, the duration reveals which one it was.
 */
export const SIGN_UP_MIN_MS = 100;

/** What shows that the sender of a mailed token is the one who signed up. */
export interface SignUpProof {
  /** User of the session that came with the request. */
  readonly sessionUserId: string | undefined;
  readonly password: string | undefined;
  readonly address: string;
}

export type Verified =
  | { readonly kind: 'ok' }
  /** The token is unknown, used or too old. */
  | { readonly kind: 'invalid' }
  /** Neither the session nor the password of the sign-up came with the token, which stays valid. */
  | { readonly kind: 'unproven' }
  | Limited;

export function createSignUp(state: UsersState) {
  const { db, passwords, attempts } = state;
  return {
    /** The answer is the same for a known address: only the owner of the address is notified, by mail. */
    async signUp({
      email: given,
      password,
      accountName,
      address,
    }: {
      readonly email: string;
      readonly password: string;
      readonly accountName: string | undefined;
      readonly address: string;
    }): Promise<AcceptedOrLimited | Weak> {
      const email = given.toLowerCase();
      const limited = await attempts.take(['signUpFromNetwork', networkOf(address)]);
      if (limited !== undefined) return limited;
      const hash = await passwords.hashNew(password, email);
      if (hash === undefined) return { kind: 'weak' };
      const wanted = { email, hash, accountName: accountName ?? email, address };
      const [user] = await Promise.all([insertUser(db, wanted), sleep(SIGN_UP_MIN_MS)]);
      if (user !== undefined) mailVerification(state, user);
      else if ((await attempts.take(['mailToUser', email])) === undefined) {
        mailKnownUser(state, email);
      }
      return { kind: 'ok' };
    },

    /**
     * Verifies an address by a mailed token. The token alone proves only that its sender reads the
     * mails: whoever signed up with a stranger's address would get a verified account from that
     * stranger. So the session or the password of the sign-up must come with the token; the owner
     * of the address, who has neither, sets a new password by mail.
     */
    async verifyEmail(token: string, proof: SignUpProof): Promise<Verified> {
      const known = await userOfToken(db, token, 'verify_email');
      if (known === undefined) return { kind: 'invalid' };
      const proven = await proveSignUp(state, known, proof);
      if (proven.kind !== 'ok') return proven;
      return inTurn(db, known.id, async (tx): Promise<Verified> => {
        const user = await lockUser(tx, known.id);
        // A new password would have ended the session, and voided the token.
        if (user?.password_hash !== proven.hash) return { kind: 'invalid' };
        if ((await useMailToken(tx, token, 'verify_email')) === undefined) {
          return { kind: 'invalid' };
        }
        await setVerified(tx, user, proof.address);
        return { kind: 'ok' };
      });
    },

    async resendVerification(given: string, address: string): Promise<AcceptedOrLimited> {
      const email = given.toLowerCase();
      const limited = await limitMail(state, email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(db, email);
      if (user?.email_verified_at === null && user.closed_at === null) {
        mailVerification(state, user);
      }
      return { kind: 'ok' };
    },
  };
}

/** Checks that the sender of a token has the session or the password of the sign-up. */
async function proveSignUp(
  state: UsersState,
  user: { readonly id: string; readonly accountId: string; readonly password_hash: string },
  { sessionUserId, password, address }: SignUpProof,
): Promise<
  { readonly kind: 'ok'; readonly hash: string } | { readonly kind: 'unproven' } | Limited
> {
  if (sessionUserId === user.id) return { kind: 'ok', hash: user.password_hash };
  if (password === undefined) return { kind: 'unproven' };
  const checked = await checkAgain(state, user.id, password, address);
  if (checked.kind !== 'refused') return checked;
  noteRefusedSignIn(user, 'password_wrong', address);
  return { kind: 'unproven' };
}

export async function setVerified(
  tx: Transaction<Tables>,
  user: UserRow,
  address: string,
): Promise<void> {
  await tx
    .updateTable('users')
    .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
    .where('id', '=', user.id)
    .execute();
  await auditUser(tx, user, 'email.verified', address);
}

function mailVerification(
  { db, mails, publicUrl }: UsersState,
  user: Pick<UserRow, 'id' | 'email'>,
): void {
  mails.add(async () => {
    const token = await issueMailToken(db, user.id, 'verify_email');
    return verificationMail(user.email, publicUrl, token);
  });
}

function mailKnownUser({ db, mails, publicUrl }: UsersState, email: string): void {
  mails.add(async () => {
    const user = await findUser(db, email);
    if (user === undefined) return undefined;
    return user.closed_at === null
      ? alreadySignedUpMail(email, publicUrl)
      : accountClosedMail(email, publicUrl, erasureTime(user.closed_at));
  });
}
