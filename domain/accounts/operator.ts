import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import { newId } from '../access/id.ts';
import { raise } from './account-events.ts';
import { lockAccount, readSubscriptionRow } from './account-row.ts';
import { type AccountRequest, writeAudit } from './audit.ts';
import { applyBillingEvent, type BillingOutcome } from './billing.ts';
import { revokeAllKeys } from './keys.ts';
import { subscriptionOf } from './subscriptions.ts';
import { TEST_PROVIDER } from './test-billing.ts';

export const ACCOUNTS_LIST_MAX = 500;

interface AccountLimits {
  /** Calls per second. */
  readonly rate: number | null;
  /** Calls at once. */
  readonly burst: number | null;
  readonly callsPerDay: number | null;
}

/** Finds an account by its id or by the e-mail address of one of its users. @returns its id */
export async function findAccount(db: Database, idOrEmail: string): Promise<string | undefined> {
  const account = await db
    .selectFrom('accounts')
    .select('id')
    .where('id', '=', idOrEmail)
    .executeTakeFirst();
  if (account !== undefined) return account.id;
  const user = await db
    .selectFrom('users')
    .select('account_id')
    .where('email', '=', idOrEmail.toLowerCase())
    .executeTakeFirst();
  return user?.account_id;
}

/** Reads an account as the operator sees it; limits that are null are the tier's. */
export async function readAccount(db: Database, accountId: string) {
  const row = await db
    .selectFrom('accounts')
    .selectAll()
    .select((is) =>
      is
        .selectFrom('api_keys')
        .whereRef('api_keys.account_id', '=', 'accounts.id')
        .where('revoked_at', 'is', null)
        .where(sql<boolean>`coalesce(expires_at > now(), true)`)
        .select(sql<string>`count(*)`.as('live'))
        .as('live_keys'),
    )
    .where('id', '=', accountId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const users = await db
    .selectFrom('users')
    .select(['id', 'email', sql<boolean>`email_verified_at IS NOT NULL`.as('verified')])
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .limit(100)
    .execute();
  const subscription = await readSubscriptionRow(db, accountId);
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    suspendedReason: row.suspended_reason,
    createdAt: row.created_at,
    closedAt: row.closed_at ?? undefined,
    limits: { rate: row.rate_per_s, burst: row.rate_burst, callsPerDay: row.calls_per_day },
    users,
    subscription: subscription === undefined ? undefined : subscriptionOf(subscription),
    liveKeys: Number(row.live_keys),
  };
}

/** Newest first, at most 500; `before` is the id of the last account on the previous page. */
export async function listAccounts(
  db: Database,
  page: { readonly limit: number; readonly before?: string | undefined },
) {
  let query = db
    .selectFrom('accounts as a')
    .leftJoin('subscriptions as s', 's.account_id', 'a.id')
    .select(['a.id', 'a.name', 'a.status', 's.tier', 's.status as subscription'])
    .select('a.created_at as createdAt')
    .orderBy('a.created_at', 'desc')
    .orderBy('a.id', 'desc')
    .limit(Math.max(1, Math.min(page.limit, ACCOUNTS_LIST_MAX)));
  if (page.before !== undefined) {
    const { before } = page;
    query = query.where(
      sql<boolean>`(a.created_at, a.id) < (SELECT created_at, id FROM accounts WHERE id = ${before})`,
    );
  }
  return query.execute();
}

/** Ends all access of an active account, whose users get a mail. @returns false if the account is not active */
export function suspendAccount(
  db: Database,
  { reason, ...request }: AccountRequest & { readonly reason: string },
): Promise<boolean> {
  return changeStatus(db, request, 'active', 'suspended', reason);
}

/** Restores access; the users get a mail. @returns false if the account is not suspended */
export function unsuspendAccount(db: Database, request: AccountRequest): Promise<boolean> {
  return changeStatus(db, request, 'suspended', 'active', null);
}

function changeStatus(
  db: Database,
  request: AccountRequest,
  from: 'active' | 'suspended',
  to: 'active' | 'suspended',
  reason: string | null,
): Promise<boolean> {
  return inTurn(db, request.accountId, async (tx) => {
    const changed = await tx
      .updateTable('accounts')
      .set({ status: to, suspended_reason: reason })
      .where('id', '=', request.accountId)
      .where('status', '=', from)
      .executeTakeFirst();
    if (changed.numUpdatedRows === 0n) return false;
    const action = to === 'suspended' ? 'account.suspended' : 'account.unsuspended';
    const data = reason === null ? {} : { reason: 'operator', detail: reason };
    await raise(tx, request.accountId, action, newId('chg'), data);
    await writeAudit(tx, {
      ...request,
      action,
      target: request.accountId,
      detail: reason === null ? {} : { reason },
    });
    return true;
  });
}

/**
 * Sets limits in place of the tier's, integers above 0; null = the tier's again, undefined =
 * unchanged. @returns the limits in force; undefined if the account does not exist
 */
export function setLimits(
  db: Database,
  {
    limits,
    ...request
  }: AccountRequest & {
    readonly limits: { readonly [K in keyof AccountLimits]: AccountLimits[K] | undefined };
  },
): Promise<AccountLimits | undefined> {
  return inTurn(db, request.accountId, async (tx) => {
    if (!(await lockAccount(tx, request.accountId))) return undefined;
    const before = await tx
      .selectFrom('accounts')
      .select(['rate_per_s as rate', 'rate_burst as burst', 'calls_per_day as callsPerDay'])
      .where('id', '=', request.accountId)
      .executeTakeFirstOrThrow();
    const after = {
      rate: limits.rate === undefined ? before.rate : limits.rate,
      burst: limits.burst === undefined ? before.burst : limits.burst,
      callsPerDay: limits.callsPerDay === undefined ? before.callsPerDay : limits.callsPerDay,
    };
    await tx
      .updateTable('accounts')
      .set({
        rate_per_s: after.rate,
        rate_burst: after.burst,
        calls_per_day: after.callsPerDay,
      })
      .where('id', '=', request.accountId)
      .execute();
    await writeAudit(tx, {
      ...request,
      action: 'account.limits_set',
      target: request.accountId,
      detail: { before, after },
    });
    return after;
  });
}

/** Ends all keys of an account at once. @returns how many */
export function revokeKeys(db: Database, request: AccountRequest): Promise<number> {
  return inTurn(db, request.accountId, (tx) => revokeAllKeys(tx, request));
}

/**
 * Sends an event of the test provider for a subscription; no money moves.
 * @returns `not_test` = another provider's subscription, or none
 */
export async function sendTestBillingEvent(
  db: Database,
  {
    type,
    ...request
  }: AccountRequest & {
    readonly type: 'payment.succeeded' | 'payment.failed' | 'subscription.ended';
  },
): Promise<BillingOutcome | { readonly kind: 'not_test' }> {
  const row = await readSubscriptionRow(db, request.accountId);
  if (row?.provider !== TEST_PROVIDER) return { kind: 'not_test' };
  const at = new Date();
  const event = {
    provider: TEST_PROVIDER,
    eventId: `${row.provider_reference}/${type}/${at.toISOString()}`,
    type,
    accountId: request.accountId,
    reference: row.provider_reference,
    at,
  };
  return applyBillingEvent(db, event, request);
}
