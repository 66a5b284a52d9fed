import { type Selectable, sql, type Transaction } from 'kysely';
import type { AccountAccess } from '../access/access.ts';
import { ACCOUNT_ACCESS, type AccountAccessRow, accountAccessOf } from '../access/access-rows.ts';
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
  return (await readAccountAccesses(db, [accountId])).get(accountId);
}

/** The same of several accounts, in one query; those that do not exist are left out. */
export async function readAccountAccesses(
  db: Database | Transaction<Tables>,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, AccountAccess>> {
  const query = sql<AccountAccessRow>`
    ${sql.raw(ACCOUNT_ACCESS)} WHERE a.id = ANY(${accountIds}::text[])`;
  const { rows } = await query.execute(db);
  return new Map(rows.map((row) => [row.account_id, accountAccessOf(row)]));
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
