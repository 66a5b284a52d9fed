import { sql, type Transaction } from 'kysely';
import { type Database, isDuplicate } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { isMemberActive } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { networkOf } from '../access/network-of.ts';
import type { Role } from '../access/roles.ts';
import { lockAccount, readAccountAccess } from '../accounts/account-row.ts';
import type { Attempts, Limited } from '../accounts/attempts.ts';
import { writeAudit } from '../accounts/audit.ts';
import { EASY_TO_GUESS, type Passwords, passwordFault } from '../accounts/passwords.ts';
import { lockUser, type Session } from '../accounts/sessions.ts';
import { findInvitation, useInvitation } from './invitations.ts';
import { isLastOwner, lockMembers } from './member-rows.ts';
import { endSessions, report } from './members.ts';

export interface Joined {
  readonly kind: 'ok';
  readonly accountId: string;
  readonly email: string;
  readonly role: Role;
}

type Refused =
  /** The token is unknown, used, revoked, expired, or of another address. */
  | { readonly kind: 'invalid' }
  /** The tier of the inviting account no longer includes members. */
  | { readonly kind: 'inactive' };

export type Accepted =
  | Joined
  | Refused
  | { readonly kind: 'weak'; readonly reason: string }
  /** The address has signed up: its owner signs in and joins. */
  | { readonly kind: 'known' }
  | Limited;

export type JoinedOrRefused =
  | Joined
  | Refused
  /** The person cannot leave the account of the session. */
  | { readonly kind: 'bound'; readonly reason: string };

interface AcceptanceDeps {
  readonly db: Database;
  readonly passwords: Passwords;
  readonly attempts: Attempts;
}

export type Acceptance = ReturnType<typeof createAcceptance>;

/** Accepts invitations, as a new or as an existing user. Methods throw any database error. */
export function createAcceptance({ db, passwords, attempts }: AcceptanceDeps) {
  return {
    /** Makes a user for the invited address, which the token proves. */
    async accept(token: string, password: string, address: string): Promise<Accepted> {
      const limited = await attempts.take(['signUpFromNetwork', networkOf(address)]);
      if (limited !== undefined) return limited;
      const found = await findInvitation(db, token);
      if (found === undefined) return { kind: 'invalid' };
      const fault = passwordFault(password, found.email);
      if (fault !== undefined) return { kind: 'weak', reason: fault };
      const hash = await passwords.hashNew(password, found.email);
      if (hash === undefined) return { kind: 'weak', reason: EASY_TO_GUESS };
      try {
        return await inTurn(db, found.accountId, (tx) => addUser(tx, token, hash, address));
      } catch (error) {
        // The address is taken, and the invitation is not used up.
        if (isDuplicate(error)) return { kind: 'known' };
        throw error;
      }
    },

    /**
     * Moves the user of a session into the inviting account, and ends all of his sessions. He leaves
     * the account that he is in, which closes if it is his alone and holds nothing.
     */
    async join(token: string, session: Session, address: string): Promise<JoinedOrRefused> {
      const found = await findInvitation(db, token);
      if (found === undefined || found.email !== session.email) return { kind: 'invalid' };
      return inTurn(db, found.accountId, (tx) =>
        moveUser(tx, { token, session, address, accountId: found.accountId }),
      );
    },
  };
}

async function addUser(
  tx: Transaction<Tables>,
  token: string,
  hash: string,
  address: string,
): Promise<Joined | Refused> {
  const found = await enter(tx, token);
  if ('kind' in found) return found;
  const { accountId, email, role } = found;
  const id = newId('usr');
  await tx
    .insertInto('users')
    .values({
      id,
      account_id: accountId,
      email,
      password_hash: hash,
      role,
      email_verified_at: sql<Date>`now()`,
    })
    .execute();
  return reportJoined(tx, { userId: id, address }, found);
}

interface Move {
  readonly token: string;
  readonly session: Session;
  readonly address: string;
  readonly accountId: string;
}

async function moveUser(tx: Transaction<Tables>, move: Move): Promise<JoinedOrRefused> {
  const { token, session, address, accountId } = move;
  const { userId, accountId: left } = session;
  if (left === accountId) return { kind: 'bound', reason: 'You are a member already.' };
  // In one order, so that two people who change places do not wait for each other.
  for (const id of [left, accountId].sort()) await lockAccount(tx, id);
  const user = await lockUser(tx, userId);
  if (user?.account_id !== left) return { kind: 'invalid' };
  const reason = await bondOf(tx, userId, left);
  if (reason !== undefined) return { kind: 'bound', reason };
  const found = await enter(tx, token);
  if ('kind' in found) return found;
  await tx
    .updateTable('users')
    .set({
      account_id: accountId,
      role: found.role,
      email_verified_at: sql<Date>`coalesce(email_verified_at, now())`,
    })
    .where('id', '=', userId)
    .execute();
  await endSessions(tx, userId);
  await leave(tx, left, userId, address);
  return reportJoined(tx, { userId, address }, found);
}

/** Uses up the invitation, if its account still may have members. */
async function enter(tx: Transaction<Tables>, token: string) {
  const known = await findInvitation(tx, token);
  if (known === undefined) return { kind: 'invalid' } as const;
  await lockAccount(tx, known.accountId);
  const account = await readAccountAccess(tx, known.accountId);
  const isOpen = account?.status === 'active' && isMemberActive(account, 'read_only', Date.now());
  if (!isOpen) return { kind: 'inactive' } as const;
  // Read again under the lock: another request may have used it up meanwhile.
  return (await useInvitation(tx, token)) ?? ({ kind: 'invalid' } as const);
}

async function reportJoined(
  tx: Transaction<Tables>,
  { userId, address }: { readonly userId: string; readonly address: string },
  invitation: NonNullable<Awaited<ReturnType<typeof findInvitation>>>,
): Promise<Joined> {
  const { accountId, email, role, createdBy } = invitation;
  const request = { accountId, userId, memberId: userId, actor: `user:${userId}`, address };
  await report(tx, request, 'member.joined', { email, role, invited_by: createdBy });
  return { kind: 'ok', accountId, email, role };
}

/** Why a user cannot leave an account, which is locked; undefined if he can. */
async function bondOf(
  tx: Transaction<Tables>,
  userId: string,
  accountId: string,
): Promise<string | undefined> {
  const members = await lockMembers(tx, accountId);
  if (members.size > 1) {
    if (!isLastOwner(members, members.get(userId)!)) return undefined;
    return 'Your account would have no owner: make another member an owner first.';
  }
  const { rows } = await sql<{ is_used: boolean }>`SELECT
    EXISTS (SELECT FROM subscriptions WHERE account_id = ${accountId} AND status <> 'ended')
    OR EXISTS (SELECT FROM checkouts WHERE account_id = ${accountId} AND status IN ('open', 'failed'))
    OR EXISTS (SELECT FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > now())) AS is_used`.execute(tx);
  if (rows[0]?.is_used !== true) return undefined;
  return 'Your own account has a subscription, an open checkout or live keys: end them first.';
}

/** Closes an account that its only user has left; it holds nothing that could be in use. */
async function leave(
  tx: Transaction<Tables>,
  accountId: string,
  userId: string,
  address: string,
): Promise<void> {
  const requester = { accountId, actor: `user:${userId}`, address };
  await writeAudit(tx, { ...requester, action: 'member.left', target: userId });
  const { numUpdatedRows } = await tx
    .updateTable('accounts')
    .set({ status: 'closed', closed_at: sql<Date>`now()` })
    .where('id', '=', accountId)
    .where('status', '<>', 'closed')
    .where(sql<boolean>`NOT EXISTS (SELECT FROM users WHERE account_id = ${accountId})`)
    .executeTakeFirst();
  if (numUpdatedRows > 0n) await writeAudit(tx, { ...requester, action: 'account.closed' });
}
