import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { createAttempts, networkOf } from './attempts.ts';

const MINUTE_MS = 60_000;
/** Passwords that are looked at; of each kind in this process alone. Addresses are networks. */
export const PASSWORD_LIMITS = {
  /** Wrong ones for one user from one network: nobody is locked out from elsewhere. */
  ofUser: { max: 10, windowMs: 15 * MINUTE_MS },
  /** Of all users from one network. */
  fromNetwork: { max: 50, windowMs: 15 * MINUTE_MS },
  /** Wrong ones for one user from everywhere: for an attacker who has many networks. */
  ofUserEverywhere: { max: 100, windowMs: 24 * 60 * MINUTE_MS },
} as const;

/** A user's network is known for so long after a sign-in from it. */
const KNOWN_DAYS = 90;
/** Sign-ins that are looked through for it, the newest. */
const KNOWN_SIGN_INS_MAX = 500;

/** There were too many attempts. */
export interface Limited {
  readonly kind: 'limited';
  readonly retryAfterS: number;
}

/** Counts the passwords that are tried for users, known or not: both alike. */
export interface PasswordAttempts {
  /**
   * Counts one, before the password is looked at. @returns what to answer instead of looking
   * @throws what the database says, at the limit from everywhere
   */
  take(email: string, address: string): Promise<Limited | undefined>;
  /** That one was right. */
  wasRight(email: string, address: string): void;
  /** The user has shown otherwise who it is: by a mailed token. */
  forgetUser(email: string): void;
}

/**
 * Counts in this process. At the limit from everywhere a user can still sign in from networks that
 * it signed in from in the last 90 days, or set a new password by mail: an attacker with many
 * addresses is stopped, and the user is not locked out.
 */
export function createPasswordAttempts(db: Database): PasswordAttempts {
  const ofUser = createAttempts(PASSWORD_LIMITS.ofUser);
  const fromNetwork = createAttempts(PASSWORD_LIMITS.fromNetwork);
  const everywhere = createAttempts(PASSWORD_LIMITS.ofUserEverywhere);
  const pairOf = (email: string, address: string) => `${email}\n${networkOf(address)}`;
  return {
    async take(email, address) {
      const network = networkOf(address);
      // One after another: what one refuses takes no room in the next.
      const nearS = fromNetwork.take(network) || ofUser.take(pairOf(email, address));
      if (nearS > 0) return { kind: 'limited', retryAfterS: nearS };
      const retryAfterS = everywhere.take(email);
      if (retryAfterS === 0 || (await isKnown(db, email, network))) return undefined;
      return { kind: 'limited', retryAfterS };
    },
    wasRight(email, address) {
      ofUser.forget(pairOf(email, address));
      everywhere.giveBack(email);
    },
    forgetUser: (email) => everywhere.forget(email),
  };
}

async function isKnown(db: Database, email: string, network: string): Promise<boolean> {
  const rows = await db
    .selectFrom('users as u')
    .innerJoin('audit_log as l', 'l.account_id', 'u.account_id')
    .select('l.address')
    .where('u.email', '=', email)
    .where('l.action', '=', 'session.begun')
    .where('l.actor', '=', sql<string>`'user:' || u.id`)
    .where('l.at', '>', sql<Date>`now() - make_interval(days => ${KNOWN_DAYS})`)
    .orderBy('l.at', 'desc')
    .limit(KNOWN_SIGN_INS_MAX)
    .execute();
  return rows.some(({ address }) => address !== null && networkOf(address) === network);
}
