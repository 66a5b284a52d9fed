import type { Transaction } from 'kysely';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { raiseSecurityEvent } from './account-alerts.ts';
import { erasureTime } from './account-closure.ts';
import { issueMailToken, useMailToken } from './mail-tokens.ts';
import { accountClosedMail, resetMail } from './mails.ts';
import { lockUser, type UserRow } from './sessions.ts';
import { setVerified } from './sign-up.ts';
import {
  type AcceptedOrLimited,
  auditUser,
  checkAgain,
  findUser,
  limitMail,
  type PasswordChecked,
  type UsersState,
  type Weak,
} from './user-checks.ts';

export function createPasswordChanges(state: UsersState) {
  return { ...createReset(state), ...createChange(state) };
}

function createReset(state: UsersState) {
  const { db, mails, passwords, publicUrl, passwordLimiter } = state;
  return {
    async requestReset(given: string, address: string): Promise<AcceptedOrLimited> {
      const email = given.toLowerCase();
      const limited = await limitMail(state, email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(db, email);
      if (user === undefined) return { kind: 'ok' };
      mails.add(async () => {
        if (user.closed_at !== null) {
          return accountClosedMail(email, publicUrl, erasureTime(user.closed_at));
        }
        const token = await issueMailToken(db, user.id, 'reset_password');
        return resetMail(email, publicUrl, token);
      });
      return { kind: 'ok' };
    },

    /**
     * Sets a password by a mailed token, which also verifies the address, and ends all sessions.
     * @param email of the token's user
     */
    async resetPassword(
      token: string,
      email: string,
      password: string,
      address: string,
    ): Promise<{ readonly kind: 'ok' | 'invalid' } | Weak> {
      const hash = await passwords.hashNew(password, email);
      if (hash === undefined) return { kind: 'weak' };
      const isSet = await inTurn(db, email, async (tx) => {
        const userId = await useMailToken(tx, token, 'reset_password');
        const user = userId === undefined ? undefined : await lockUser(tx, userId);
        if (user === undefined) return false;
        await setPassword(tx, user, hash, address);
        // The token was mailed to this address.
        if (user.email_verified_at === null) await takeOver(tx, user, address);
        return true;
      });
      if (!isSet) return { kind: 'invalid' };
      await passwordLimiter.forgetUser(email);
      return { kind: 'ok' };
    },
  };
}

function createChange(state: UsersState) {
  const { db, passwords } = state;
  return {
    /** Sets a password by the old one, and ends all sessions. */
    async changePassword(
      userId: string,
      old: string,
      password: string,
      address: string,
    ): Promise<PasswordChecked | Weak> {
      const checked = await checkAgain(state, userId, old, address);
      if (checked.kind !== 'ok') return checked;
      const hash = await passwords.hashNew(password, checked.email);
      if (hash === undefined) return { kind: 'weak' };
      const isSet = await inTurn(db, userId, async (tx) => {
        const user = await lockUser(tx, userId);
        if (user?.password_hash !== checked.hash) return false;
        await setPassword(tx, user, hash, address);
        return true;
      });
      return { kind: isSet ? 'ok' : 'refused' };
    },

    /** Checks a signed-in user's password again, before an action that cannot be undone. */
    async checkPassword(
      userId: string,
      password: string,
      address: string,
    ): Promise<PasswordChecked> {
      const checked = await checkAgain(state, userId, password, address);
      return checked.kind === 'ok' ? { kind: 'ok' } : checked;
    },
  };
}

/** Sets a password, ends all sessions and tokens, and raises the event that is mailed. */
async function setPassword(
  tx: Transaction<Tables>,
  user: UserRow,
  hash: string,
  address: string,
): Promise<void> {
  await tx.updateTable('users').set({ password_hash: hash }).where('id', '=', user.id).execute();
  await tx.deleteFrom('sessions').where('user_id', '=', user.id).execute();
  await tx.deleteFrom('mail_tokens').where('user_id', '=', user.id).execute();
  await auditUser(tx, user, 'password.changed', address);
  const at = new Date().toISOString();
  await raiseSecurityEvent(tx, user.account_id, {
    type: 'password.changed',
    occurrence: `${user.id}/${at}`,
    data: { email: user.email, address, at },
  });
}

/**
 * Hands an account that was never verified to the owner of its address: a stranger may have signed
 * up with that address, so the name and the networks of the sign-ins so far are theirs.
 */
async function takeOver(tx: Transaction<Tables>, user: UserRow, address: string): Promise<void> {
  await setVerified(tx, user, address);
  await tx.deleteFrom('sign_in_networks').where('user_id', '=', user.id).execute();
  await tx.updateTable('users').set({ last_sign_in_at: null }).where('id', '=', user.id).execute();
  await tx
    .updateTable('accounts')
    .set({ name: user.email })
    .where('id', '=', user.account_id)
    .execute();
}
