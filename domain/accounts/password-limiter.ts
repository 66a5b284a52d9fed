import type { Database } from '../../lib/postgres/database.ts';
import { networkOf } from '../access/network-of.ts';
import type { Attempts, Limited } from './attempts.ts';
import { isKnownNetwork } from './sign-in-networks.ts';

export type PasswordLimiter = ReturnType<typeof createPasswordLimiter>;

/**
 * Counts password attempts for users, known and unknown alike. At the limit from everywhere, a user
 * can still sign in from networks used in the last 90 days, or set a new password by mail: an
 * attacker with many addresses is stopped, and the user is not locked out. Methods throw any database
 * error.
 */
export function createPasswordLimiter(db: Database, attempts: Attempts) {
  const pairOf = (email: string, address: string) => `${email}\n${networkOf(address)}`;
  return {
    /** Counts an attempt before the password is checked. @returns the answer if it must not be */
    async take(email: string, address: string): Promise<Limited | undefined> {
      const network = networkOf(address);
      const near = await attempts.take(
        ['passwordFromNetwork', network],
        ['passwordOfUser', pairOf(email, address)],
      );
      if (near !== undefined) return near;
      const limited = await attempts.take(['passwordOfUserEverywhere', email]);
      if (limited === undefined || (await isKnownNetwork(db, email, network))) return undefined;
      return limited;
    },
    /** The password was right. */
    async wasRight(email: string, address: string): Promise<void> {
      await attempts.forget(['passwordOfUser', pairOf(email, address)]);
      await attempts.giveBack(['passwordOfUserEverywhere', email]);
    },
    /** The user has proved their identity by a mailed token. */
    forgetUser: (email: string) => attempts.forget(['passwordOfUserEverywhere', email]),
  };
}
