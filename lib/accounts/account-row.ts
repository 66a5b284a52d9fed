import type { Selectable, Transaction } from 'kysely';
import type { AccountAccess } from '../access/access.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';

/**
 * Locks an account until the transaction ends: changes of its keys and subscription go one after
 * another. What is read after it is what the one before has left. @returns whether it exists
 */
export async function lockAccount(tx: Transaction<Tables>, accountId: string): Promise<boolean> {
  // NO KEY: rows that refer to the account (usage, events) are written on meanwhile.
  const row = await tx
    .selectFrom('accounts')
    .select('id')
    .where('id', '=', accountId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** What an account may do by its rows at this moment; undefined when there is none of this id. */
export async function readAccountAccess(
  db: Database | Transaction<Tables>,
  accountId: string,
): Promise<AccountAccess | undefined> {
  const row = await db
    .selectFrom('accounts as a')
    .leftJoin('subscriptions as s', 's.account_id', 'a.id')
    .select(['a.id', 'a.name', 'a.status', 'a.rate_per_s', 'a.rate_burst', 'a.calls_per_day'])
    .select(['s.tier', 's.status as paid', 's.past_due_since', 's.period_end'])
    .select('s.cancel_at_period_end')
    .where('a.id', '=', accountId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    subscription:
      row.tier === null || row.paid === null || row.period_end === null
        ? undefined
        : {
            tier: row.tier,
            status: row.paid,
            pastDueSinceMs: row.past_due_since?.getTime(),
            periodEndMs: row.period_end.getTime(),
            cancelAtPeriodEnd: row.cancel_at_period_end === true,
          },
    ratePerS: row.rate_per_s ?? undefined,
    rateBurst: row.rate_burst ?? undefined,
    callsPerDay: row.calls_per_day ?? undefined,
  };
}

/** The row of `subscriptions`. */
export type SubscriptionRow = Selectable<Tables['subscriptions']>;

export function readSubscriptionRow(
  db: Database | Transaction<Tables>,
  accountId: string,
): Promise<SubscriptionRow | undefined> {
  return db
    .selectFrom('subscriptions')
    .selectAll()
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}
