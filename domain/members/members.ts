import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import type { Role } from '../access/roles.ts';
import { raiseSecurityEvent } from '../accounts/account-alerts.ts';
import { auditEntry, writeAudit } from '../accounts/audit.ts';
import {
  changeRefusal,
  isLastOwner,
  lockMembers,
  type MemberRefusal,
  type MemberRequest,
  type MemberRow,
} from './member-rows.ts';

type OfMember = MemberRequest & { readonly memberId: string };

export type Member = Awaited<ReturnType<typeof listMembers>>[number];

/** undefined = the account has no such member. */
export type MemberChanged = { readonly kind: 'ok' } | MemberRefusal | undefined;

/** The people who act for an account, oldest first: as many as the bound of members. */
export function listMembers(db: Database, accountId: string) {
  return db
    .selectFrom('users as u')
    .leftJoin('second_factors as f', 'f.user_id', 'u.id')
    .select(['u.id', 'u.email', 'u.role'])
    .select(['u.created_at as createdAt', 'u.last_sign_in_at as lastSignInAt'])
    .select(sql<boolean>`f.confirmed_at IS NOT NULL`.as('secondFactor'))
    .where('u.account_id', '=', accountId)
    .orderBy('u.created_at')
    .orderBy('u.id')
    .execute();
}

/** Gives a member another role, which ends the member's sessions. */
export function changeRole(
  db: Database,
  change: OfMember & { readonly role: Role },
): Promise<MemberChanged> {
  const { accountId, memberId, role } = change;
  return inTurn(db, accountId, async (tx) => {
    const members = await lockMembers(tx, accountId);
    const member = members.get(memberId);
    if (member === undefined) return undefined;
    const refusal = changeRefusal(members, change, member.role, role);
    if (refusal !== undefined) return refusal;
    if (member.role === role) return { kind: 'ok' };
    if (isLastOwner(members, member)) return { kind: 'last_owner' };
    await tx.updateTable('users').set({ role }).where('id', '=', memberId).execute();
    await endSessions(tx, memberId);
    const detail = { email: member.email, from: member.role, to: role };
    await report(tx, change, 'member.role_changed', detail);
    return { kind: 'ok' };
  });
}

/**
 * Ends a membership and the member's sessions. The person keeps address, password and second factor,
 * with an empty account of his own; keys that he made belong to the account and stay.
 */
export function removeMember(db: Database, removal: OfMember): Promise<MemberChanged> {
  const { accountId, memberId } = removal;
  return inTurn(db, accountId, async (tx) => {
    const members = await lockMembers(tx, accountId);
    const member = members.get(memberId);
    if (member === undefined) return undefined;
    const refusal = changeRefusal(members, removal, member.role);
    if (refusal !== undefined) return refusal;
    if (isLastOwner(members, member)) return { kind: 'last_owner' };
    await moveOut(tx, member);
    await report(tx, removal, 'member.removed', { email: member.email, role: member.role });
    return { kind: 'ok' };
  });
}

async function moveOut(tx: Transaction<Tables>, { id, email }: MemberRow): Promise<void> {
  const accountId = newId('acc');
  await tx.insertInto('accounts').values({ id: accountId, name: email }).execute();
  const role: Role = 'owner';
  await tx.updateTable('users').set({ account_id: accountId, role }).where('id', '=', id).execute();
  await endSessions(tx, id);
  // Who removed him is no part of this account.
  await writeAudit(tx, { accountId, actor: 'system', action: 'account.opened' });
}

/** Ends the sessions of a user; their sockets and the links of their exports end with them. */
export async function endSessions(tx: Transaction<Tables>, userId: string): Promise<void> {
  await tx.deleteFrom('sessions').where('user_id', '=', userId).execute();
}

/** Audits a change of a member and mails it, because a stranger in the account may have made it. */
export async function report(
  tx: Transaction<Tables>,
  request: MemberRequest & { readonly memberId: string },
  type: 'member.joined' | 'member.removed' | 'member.role_changed',
  detail: { readonly email: string; readonly [more: string]: unknown },
): Promise<void> {
  const { accountId, memberId, actor, address } = request;
  await writeAudit(tx, { ...auditEntry(request, type, memberId), detail });
  const at = new Date().toISOString();
  await raiseSecurityEvent(tx, accountId, {
    type,
    occurrence: `${memberId}/${at}`,
    data: { member: memberId, ...detail, by: actor, address, at },
  });
}
