import type { Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** Whether a second factor of the user is in force. */
export async function isFactorOn(
  on: Database | Transaction<Tables>,
  userId: string,
): Promise<boolean> {
  const row = await on
    .selectFrom('second_factors')
    .select('user_id')
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .executeTakeFirst();
  return row !== undefined;
}
