import { sql, type Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';
import { networkOf } from '../access/network-of.ts';
import { raiseNewAddress } from './account-alerts.ts';
import { erasureTime } from './account-closure.ts';
import type { Limited } from './attempts.ts';
import { writeAudit } from './audit.ts';
import { isFactorOn } from './factor-state.ts';
import {
  beginSession,
  type FactorState,
  lockUser,
  type SessionBegun,
  type UserRow,
} from './sessions.ts';
import { rememberNetwork } from './sign-in-networks.ts';
import type { Visitor } from './visitor.ts';

export type SignedIn =
  | ({ readonly kind: 'ok' } & SessionBegun)
  /** Unknown user or wrong password, which the caller must not distinguish. */
  | { readonly kind: 'refused' }
  /** The password is right, but a code is missing, wrong or already used. */
  | { readonly kind: 'code_required' | 'code_refused' }
  /** The password is right, but the account is closed. */
  | { readonly kind: 'closed'; readonly erasedAt: Date }
  | Limited;

/**
 * Begins a session after a right password, unless the account, the user or the second factor has
 * changed since.
 */
export async function beginSignedInSession(
  tx: Transaction<Tables>,
  known: Pick<UserRow, 'id' | 'password_hash'>,
  visitor: Visitor,
  factor: FactorState,
): Promise<SignedIn> {
  const account = await tx
    .selectFrom('accounts as a')
    .innerJoin('users as u', 'u.account_id', 'a.id')
    .select(['a.id', 'a.closed_at'])
    .where('u.id', '=', known.id)
    .forShare('a')
    .executeTakeFirst();
  const user = await lockUser(tx, known.id);
  // A new password has ended all sessions, so the old one must not begin another.
  if (account === undefined || user?.password_hash !== known.password_hash) {
    return { kind: 'refused' };
  }
  // Moved to another account meanwhile, which is not locked.
  if (user.account_id !== account.id) return { kind: 'refused' };
  if (account.closed_at !== null) {
    return { kind: 'closed', erasedAt: erasureTime(account.closed_at) };
  }
  // Confirming a second factor ends all other sessions, so one without it must not begin afterwards.
  if (!factor.isOn && (await isFactorOn(tx, user.id))) return { kind: 'code_required' };
  const isNew = await rememberNetwork(tx, user.id, networkOf(visitor.address));
  // The first sign-in of all is expected.
  if (isNew && user.last_sign_in_at !== null) await raiseNewAddress(tx, user, visitor);
  await tx
    .updateTable('users')
    .set({ last_sign_in_at: sql<Date>`now()` })
    .where('id', '=', user.id)
    .execute();
  await writeAudit(tx, {
    accountId: account.id,
    actor: `user:${user.id}`,
    action: 'session.begun',
    address: visitor.address,
  });
  return { kind: 'ok', ...(await beginSession(tx, user, visitor, factor)) };
}
