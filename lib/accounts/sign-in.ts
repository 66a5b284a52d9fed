import { sql, type Transaction } from 'kysely';
import type { Tables } from '../postgres/tables.ts';
import { writeAudit } from './audit.ts';
import { erasureOf } from './close-account.ts';
import type { Limited } from './password-attempts.ts';
import { beginSession, lockUser, type SessionBegun, type UserRow } from './sessions.ts';

export type SignedIn =
  | ({ readonly kind: 'ok' } & SessionBegun)
  /** No such user, or another password: one and the same. */
  | { readonly kind: 'refused' }
  /** The password is right, and the account is closed. */
  | { readonly kind: 'closed'; readonly erasedAt: Date }
  | Limited;

/** Begins the session of a user whose password was right, as account and user are by now. */
export async function enter(
  tx: Transaction<Tables>,
  known: Pick<UserRow, 'id' | 'password_hash'>,
  address: string,
): Promise<SignedIn> {
  const account = await tx
    .selectFrom('accounts as a')
    .innerJoin('users as u', 'u.account_id', 'a.id')
    .select(['a.id', 'a.closed_at'])
    .where('u.id', '=', known.id)
    .forShare('a')
    .executeTakeFirst();
  const user = await lockUser(tx, known.id);
  // A new password has ended all sessions: one that the old one opens must not follow.
  if (account === undefined || user?.password_hash !== known.password_hash) {
    return { kind: 'refused' };
  }
  if (account.closed_at !== null) {
    return { kind: 'closed', erasedAt: erasureOf(account.closed_at) };
  }
  await tx
    .updateTable('users')
    .set({ last_sign_in_at: sql<Date>`now()` })
    .where('id', '=', user.id)
    .execute();
  await writeAudit(tx, {
    accountId: account.id,
    actor: `user:${user.id}`,
    action: 'session.begun',
    address,
  });
  return { kind: 'ok', ...(await beginSession(tx, user, address)) };
}
