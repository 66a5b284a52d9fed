import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { type Requester, writeAudit } from './audit.ts';
import { revokeAllKeys } from './keys.ts';

/** A closed account is erased so many days later. */
export const ERASED_AFTER_DAYS = 30;

/** Closes an account: keys are dead and sessions ended at once; its data goes 30 days later. */
export async function closeAccount(
  db: Database,
  { accountId, ...requester }: Requester & { readonly accountId: string },
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('accounts')
      .set({ status: 'closed', closed_at: sql<Date>`coalesce(closed_at, now())` })
      .where('id', '=', accountId)
      .execute();
    await revokeAllKeys(tx, { accountId, ...requester });
    await tx
      .deleteFrom('sessions')
      .where(
        'user_id',
        'in',
        tx.selectFrom('users').select('id').where('account_id', '=', accountId),
      )
      .execute();
    await writeAudit(tx, { accountId, ...requester, action: 'account.closed' });
  });
}

/** Erases accounts that were closed 30 days ago; the audit log stays. @returns how many */
export async function eraseClosedAccounts(db: Database): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('accounts')
    .where('status', '=', 'closed')
    .where('closed_at', '<', sql<Date>`now() - make_interval(days => ${ERASED_AFTER_DAYS})`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
