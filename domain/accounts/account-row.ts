import { type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { assertInTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { ACCOUNT_ACCESS, type AccountAccessRow, accountAccessOf } from '../access/access-rows.ts';
import type { AccountAccess } from '../access/account-access.ts';

/**
 * Locks an account until the transaction ends, so that changes of its keys and subscription are
 * serialised: later reads see the result of the previous change. The transaction must be one of
 * `inTurn`. @returns whether it exists
 */
export async function lockAccount(tx: Transaction<Tables>, accountId: string): Promise<boolean> {
  assertInTurn(tx);
  // NO KEY: rows that refer to the account (usage, events) can still be written meanwhile.
  const row = await tx
    .selectFrom('accounts')
    .select('id')
    .where('id', '=', accountId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** An account's access by its rows at this moment; undefined when the account does not exist. */
export async function readAccountAccess(
  db: Database | Transaction<Tables>,
  accountId: string,
): Promise<AccountAccess | undefined> {
  return (await readAccountAccesses(db, [accountId])).get(accountId);
}

/** The access of several accounts in one query; accounts that do not exist are left out. */
export async function readAccountAccesses(
  db: Database | Transaction<Tables>,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, AccountAccess>> {
  const query = sql<AccountAccessRow>`
    ${sql.raw(ACCOUNT_ACCESS)} WHERE a.id = ANY(${accountIds}::text[])`;
  const { rows } = await query.execute(db);
  return new Map(rows.map((row) => [row.account_id, accountAccessOf(row)]));
}

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
