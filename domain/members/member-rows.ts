import type { Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';
import { mayDo, type Role } from '../access/roles.ts';
import { lockAccount } from '../accounts/account-row.ts';
import type { AccountRequest } from '../accounts/audit.ts';

export const MEMBER_LIMITS = {
  /** Members and open invitations of an account. */
  perAccountMax: 100,
  invitationS: 7 * 86_400,
  /** Mails of one invitation, the first one included. */
  mailsOfInvitationMax: 5,
} as const;

/** A change that a signed-in member asks for. */
export interface MemberRequest extends AccountRequest {
  readonly userId: string;
}

export interface MemberRow {
  readonly id: string;
  readonly email: string;
  readonly role: Role;
}

/** Why a member may not make a change. */
export type MemberRefusal =
  /** The role permits no changes of members, or none of owners. */
  | { readonly kind: 'forbidden'; readonly roles: readonly Role[] }
  /** The account would have no owner. */
  | { readonly kind: 'last_owner' };

/**
 * Locks the account, and reads its members as the previous change left them: of two owners who
 * demote each other at once, the second one is no longer an owner. The transaction must be one of
 * `inTurn`.
 */
export async function lockMembers(
  tx: Transaction<Tables>,
  accountId: string,
): Promise<ReadonlyMap<string, MemberRow>> {
  await lockAccount(tx, accountId);
  const rows = await tx
    .selectFrom('users')
    .select(['id', 'email', 'role'])
    .where('account_id', '=', accountId)
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * Whether a member may give, change or take a role: who manages members may, but only owners make,
 * change or remove owners. @param roles the roles before and after
 */
export function changeRefusal(
  members: ReadonlyMap<string, MemberRow>,
  { userId }: MemberRequest,
  ...roles: readonly Role[]
): MemberRefusal | undefined {
  const own = members.get(userId)?.role;
  if (own === undefined || !mayDo(own, 'members:change')) {
    return { kind: 'forbidden', roles: ['owner', 'admin'] };
  }
  const isOfOwners = roles.includes('owner') && own !== 'owner';
  return isOfOwners ? { kind: 'forbidden', roles: ['owner'] } : undefined;
}

export function isLastOwner(members: ReadonlyMap<string, MemberRow>, { id, role }: MemberRow) {
  if (role !== 'owner') return false;
  return [...members.values()].every((other) => other.id === id || other.role !== 'owner');
}
