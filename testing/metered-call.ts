import type { MeteredCall } from '../domain/access/account-access.ts';
import type { Tier } from '../domain/access/tiers.ts';
import type { Database } from '../lib/postgres/database.ts';
import { createTestAccount } from './accounts.ts';
import type { DatabaseNamespace } from './database-namespace.ts';

/** Creates an account and one of its calls, as the guard of a route passes it to the meter. */
export async function createMeteredCall(
  db: Database,
  namespace: DatabaseNamespace,
  tier: Tier,
  callsPerDay?: number,
): Promise<MeteredCall> {
  const { id, keyId } = await createTestAccount(db, namespace, {
    tier,
    ...(callsPerDay === undefined ? {} : { callsPerDay }),
  });
  return {
    account: {
      id,
      name: 'Test',
      status: 'active',
      subscription: {
        tier,
        status: 'active',
        pastDueSinceMs: undefined,
        periodEndMs: Date.now() + 86_400_000,
        cancelAtPeriodEnd: false,
      },
      ratePerS: 100_000,
      rateBurst: 100_000,
      callsPerDay,
    },
    keyId,
    endpoint: 'GET /api/pills/latest',
  };
}

/** Calls of an account by the exact daily count, summed over all days. */
export async function usedCalls(db: Database, accountId: string): Promise<number> {
  const { used } = await db
    .selectFrom('usage_days')
    .select(({ fn }) => fn.sum<string | null>('used').as('used'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return Number(used ?? 0);
}

/** Calls of an account by the count per key and endpoint, summed over all days. */
export async function usedCallsByKey(db: Database, accountId: string): Promise<number> {
  const { calls } = await db
    .selectFrom('usage_calls')
    .select(({ fn }) => fn.sum<string | null>('calls').as('calls'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return Number(calls ?? 0);
}
