import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { lockAccount, readSubscriptionRow } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';
import { applyBillingEvent, type BillingOutcome } from './billing.ts';
import { revokeAllKeys } from './keys.ts';
import { type SubscriptionRecord, subscriptionOf } from './subscriptions.ts';
import { TEST_PROVIDER } from './test-billing.ts';

export const ACCOUNTS_LIST_MAX = 500;

/** An account as the operator sees it. */
export interface AccountOverview {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended' | 'closed';
  readonly suspendedReason: string | null;
  readonly createdAt: Date;
  /** Instead of the tier's; null = the tier's. */
  readonly limits: AccountLimits;
  readonly users: readonly {
    readonly id: string;
    readonly email: string;
    readonly verified: boolean;
  }[];
  readonly subscription: SubscriptionRecord | undefined;
  readonly liveKeys: number;
}

export interface AccountLimits {
  /** Calls a second. */
  readonly rate: number | null;
  /** Calls at once. */
  readonly burst: number | null;
  readonly callsPerDay: number | null;
}

/** undefined = as it is. */
export type LimitsChange = { readonly [K in keyof AccountLimits]: AccountLimits[K] | undefined };

export interface AccountListed {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended' | 'closed';
  readonly tier: string | null;
  readonly subscription: string | null;
  readonly createdAt: Date;
}

/** Who asks, and for which account. */
export interface OperatorRequest extends Requester {
  readonly accountId: string;
}

/** The id of an account, given its id or the address of a user of it. */
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

export async function readAccount(
  db: Database,
  accountId: string,
): Promise<AccountOverview | undefined> {
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
    limits: { rate: row.rate_per_s, burst: row.rate_burst, callsPerDay: row.calls_per_day },
    users,
    subscription: subscription === undefined ? undefined : subscriptionOf(subscription),
    liveKeys: Number(row.live_keys),
  };
}

/** Newest first, at most 500; `before` is the id of the last account of the page before. */
export async function listAccounts(
  db: Database,
  page: { readonly limit: number; readonly before?: string | undefined },
): Promise<readonly AccountListed[]> {
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

/** Ends all access of an active account. @returns false when it is not active */
export function suspendAccount(
  db: Database,
  { reason, ...request }: OperatorRequest & { readonly reason: string },
): Promise<boolean> {
  return changeStatus(db, request, 'active', 'suspended', reason);
}

/** Gives access back. @returns false when it is not suspended */
export function unsuspendAccount(db: Database, request: OperatorRequest): Promise<boolean> {
  return changeStatus(db, request, 'suspended', 'active', null);
}

function changeStatus(
  db: Database,
  request: OperatorRequest,
  from: 'active' | 'suspended',
  to: 'active' | 'suspended',
  reason: string | null,
): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const changed = await tx
      .updateTable('accounts')
      .set({ status: to, suspended_reason: reason })
      .where('id', '=', request.accountId)
      .where('status', '=', from)
      .executeTakeFirst();
    if (changed.numUpdatedRows === 0n) return false;
    await writeAudit(tx, {
      ...request,
      action: to === 'suspended' ? 'account.suspended' : 'account.unsuspended',
      target: request.accountId,
      detail: reason === null ? {} : { reason },
    });
    return true;
  });
}

/**
 * Sets limits in place of the tier's, whole numbers above 0; null = the tier's again, undefined =
 * as it is. @returns the limits in force, undefined when there is no such account
 */
export function setLimits(
  db: Database,
  { limits, ...request }: OperatorRequest & { readonly limits: LimitsChange },
): Promise<AccountLimits | undefined> {
  return db.transaction().execute(async (tx) => {
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
export function revokeKeys(db: Database, request: OperatorRequest): Promise<number> {
  return db.transaction().execute((tx) => revokeAllKeys(tx, request));
}

/**
 * Lets the test provider tell something of a subscription; no money moves.
 * @returns `not_test` = another provider's subscription, or none
 */
export async function tellTestBilling(
  db: Database,
  {
    type,
    ...request
  }: OperatorRequest & {
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
