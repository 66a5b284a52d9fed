import { sql, type Transaction } from 'kysely';
import type { MailQueue } from '../../lib/mail/mail-queue.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import type { Role } from '../access/roles.ts';
import type { Attempts, Limited } from '../accounts/attempts.ts';
import { auditEntry, writeAudit } from '../accounts/audit.ts';
import { invitationMail } from '../accounts/mails.ts';
import { hashToken, newToken } from '../accounts/secret-token.ts';
import {
  changeRefusal,
  lockMembers,
  MEMBER_LIMITS,
  type MemberRefusal,
  type MemberRequest,
} from './member-rows.ts';

export interface InvitationDeps {
  readonly db: Database;
  readonly mails: MailQueue;
  readonly attempts: Attempts;
  readonly publicUrl: string;
}

type OfInvitation = MemberRequest & { readonly invitationId: string };

export type Invitation = Awaited<ReturnType<typeof listInvitations>>[number];

export type Invited =
  | { readonly kind: 'ok'; readonly invitation: Invitation }
  | { readonly kind: 'limit' }
  /** The address is that of a member, or has an open invitation. */
  | { readonly kind: 'known' }
  | MemberRefusal
  | Limited;

/** undefined = the account has no such invitation. */
export type Resent =
  | { readonly kind: 'ok' }
  | { readonly kind: 'mails_limit' }
  | MemberRefusal
  | Limited
  | undefined;

export type Invitations = ReturnType<typeof createInvitations>;

/**
 * Invitations by mail. The table holds only the hash of a token, and the mail that carries the token
 * is in memory: if the process is killed before it has left, the invitation is sent again. Methods
 * throw any database error.
 */
export function createInvitations(deps: InvitationDeps) {
  const { db, attempts } = deps;
  return {
    list: (accountId: string) => listInvitations(db, accountId),

    async invite(
      wanted: MemberRequest & { readonly email: string; readonly role: Role },
    ): Promise<Invited> {
      const email = wanted.email.toLowerCase();
      const limited = await limitMail(attempts, wanted.accountId, email);
      if (limited !== undefined) return limited;
      const token = newToken();
      const result = await inTurn(db, wanted.accountId, (tx) =>
        insertInvitation(tx, { ...wanted, email }, token),
      );
      if (result.kind === 'ok') mail(deps, wanted, result.invitation, token);
      return result;
    },

    /** Sends a new token, which voids the former one and is valid for another week. */
    async resend(request: OfInvitation): Promise<Resent> {
      const { accountId, invitationId } = request;
      const known = (await listInvitations(db, accountId)).find(({ id }) => id === invitationId);
      if (known === undefined) return undefined;
      const limited = await limitMail(attempts, accountId, known.email);
      if (limited !== undefined) return limited;
      const token = newToken();
      const result = await inTurn(db, accountId, (tx) => renewToken(tx, request, token));
      if (result?.kind === 'ok') mail(deps, request, known, token);
      return result;
    },

    /** Voids an invitation. */
    revoke: (request: OfInvitation) =>
      inTurn(db, request.accountId, async (tx) => {
        const found = await lockInvitation(tx, request);
        if (found === undefined || 'refusal' in found) return found?.refusal;
        await tx.deleteFrom('invitations').where('id', '=', request.invitationId).execute();
        const entry = auditEntry(request, 'invitation.revoked', request.invitationId);
        await writeAudit(tx, { ...entry, detail: { email: found.invitation.email } });
        return { kind: 'ok' as const };
      }),
  };
}

/** Open and lately expired invitations, newest first: as many as the bound of members. */
function listInvitations(db: Database | Transaction<Tables>, accountId: string) {
  return db
    .selectFrom('invitations')
    .select(['id', 'email', 'role', 'mails', 'created_at as createdAt'])
    .select(['created_by as createdBy', 'expires_at as expiresAt'])
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

function limitMail(attempts: Attempts, accountId: string, email: string) {
  return attempts.take(['invitationsOfAccount', accountId], ['mailToUser', email]);
}

async function insertInvitation(
  tx: Transaction<Tables>,
  wanted: MemberRequest & { readonly email: string; readonly role: Role },
  token: string,
): Promise<Invited> {
  const { accountId, actor, email, role } = wanted;
  const members = await lockMembers(tx, accountId);
  const refusal = changeRefusal(members, wanted, role);
  if (refusal !== undefined) return refusal;
  if ([...members.values()].some((member) => member.email === email)) return { kind: 'known' };
  const ended = tx.deleteFrom('invitations').where('account_id', '=', accountId);
  await ended.where('expires_at', '<=', sql<Date>`now()`).execute();
  const open = await listInvitations(tx, accountId);
  if (open.some((one) => one.email === email)) return { kind: 'known' };
  if (members.size + open.length >= MEMBER_LIMITS.perAccountMax) return { kind: 'limit' };
  const id = newId('inv');
  await tx
    .insertInto('invitations')
    .values({
      id,
      account_id: accountId,
      email,
      role,
      hash: hashToken(token),
      created_by: actor,
      expires_at: EXPIRES_AT,
    })
    .execute();
  await writeAudit(tx, { ...auditEntry(wanted, 'invitation.sent', id), detail: { email, role } });
  const [invitation] = (await listInvitations(tx, accountId)).filter((one) => one.id === id);
  return { kind: 'ok', invitation: invitation! };
}

async function renewToken(
  tx: Transaction<Tables>,
  request: OfInvitation,
  token: string,
): Promise<Exclude<Resent, Limited>> {
  const found = await lockInvitation(tx, request);
  if (found === undefined || 'refusal' in found) return found?.refusal;
  const { id, mails, email } = found.invitation;
  if (mails >= MEMBER_LIMITS.mailsOfInvitationMax) return { kind: 'mails_limit' };
  await tx
    .updateTable('invitations')
    .set({ hash: hashToken(token), mails: mails + 1, expires_at: EXPIRES_AT })
    .where('id', '=', id)
    .execute();
  await writeAudit(tx, { ...auditEntry(request, 'invitation.resent', id), detail: { email } });
  return { kind: 'ok' };
}

const EXPIRES_AT = sql<Date>`now() + make_interval(secs => ${MEMBER_LIMITS.invitationS})`;

/** The invitation under the lock of its account, if the caller may change it. */
async function lockInvitation(tx: Transaction<Tables>, request: OfInvitation) {
  const members = await lockMembers(tx, request.accountId);
  const open = await listInvitations(tx, request.accountId);
  const invitation = open.find(({ id }) => id === request.invitationId);
  if (invitation === undefined) return undefined;
  const refusal = changeRefusal(members, request, invitation.role);
  return refusal === undefined ? { invitation } : { refusal };
}

function mail(
  { db, mails, publicUrl }: InvitationDeps,
  { accountId, userId }: MemberRequest,
  { email, role }: Pick<Invitation, 'email' | 'role'>,
  token: string,
): void {
  mails.add(async () => {
    const inviter = await db
      .selectFrom('users as u')
      .innerJoin('accounts as a', 'a.id', 'u.account_id')
      .select(['u.email', 'a.name'])
      .where('u.id', '=', userId)
      .where('a.id', '=', accountId)
      .executeTakeFirst();
    // Removed since, with whatever he wanted.
    if (inviter === undefined) return undefined;
    return invitationMail(email, publicUrl, { token, role, by: inviter.email, of: inviter.name });
  });
}

/** The row of an invitation by its token, if the token is still accepted. */
export function findInvitation(db: Database | Transaction<Tables>, token: string) {
  return db
    .selectFrom('invitations')
    .select(['id', 'account_id as accountId', 'email', 'role', 'created_by as createdBy'])
    .where('hash', '=', hashToken(token))
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
}

/** Uses up an invitation. The transaction holds the lock of its account. */
export async function useInvitation(tx: Transaction<Tables>, token: string) {
  const found = await findInvitation(tx, token);
  if (found !== undefined) {
    await tx.deleteFrom('invitations').where('id', '=', found.id).execute();
  }
  return found;
}
