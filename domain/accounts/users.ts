import { inTurn } from '../../lib/postgres/in-turn.ts';
import { createPasswordChanges } from './password-changes.ts';
import { beginSignedInSession, type SignedIn } from './sign-in.ts';
import { createSignUp } from './sign-up.ts';
import { findUser, noteRefusedSignIn, openUsersState, type UsersDeps } from './user-checks.ts';
import type { Visitor } from './visitor.ts';

export type Users = ReturnType<typeof createUsers>;

/**
 * People who sign in. E-mail addresses are compared in lower case. Methods throw PasswordsBusyError and
 * any database error. Mails are sent after the answer, so the response time does not reveal who has an
 * account.
 */
export function createUsers(deps: UsersDeps) {
  const state = openUsersState(deps);
  return {
    ...createSignUp(state),
    ...createPasswordChanges(state),

    /** @param visitor.code of the authenticator, or a recovery code */
    async signIn(
      given: string,
      password: string,
      { code, ...visitor }: Visitor & { readonly code?: string | undefined },
    ): Promise<SignedIn> {
      const { db, passwords, passwordLimiter, secondFactors } = state;
      const { address } = visitor;
      const email = given.toLowerCase();
      const limited = await passwordLimiter.take(email, address);
      if (limited !== undefined) return limited;
      const user = await findUser(db, email);
      const isRight = await passwords.verify(password, user?.password_hash);
      if (user === undefined) return { kind: 'refused' };
      const owner = { id: user.id, accountId: user.account_id };
      if (!isRight) {
        noteRefusedSignIn(owner, 'password_wrong', address);
        return { kind: 'refused' };
      }
      await passwordLimiter.wasRight(email, address);
      const isOn = await secondFactors.isOn(user.id);
      if (isOn) {
        if (code === undefined) return { kind: 'code_required' };
        const checked = await secondFactors.check({ userId: user.id, ...owner, address }, code);
        if (checked.kind === 'refused') {
          noteRefusedSignIn(owner, 'code_wrong', address);
          return { kind: 'code_refused' };
        }
        if (checked.kind !== 'ok') return checked;
      }
      const factor = { isOn, isFresh: isOn };
      return inTurn(db, user.account_id, (tx) => beginSignedInSession(tx, user, visitor, factor));
    },
  };
}
