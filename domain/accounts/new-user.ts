import { type Database, isDuplicate } from '../../lib/postgres/database.ts';
import { newId } from '../access/id.ts';
import { writeAudit } from './audit.ts';

/** Creates an account with its first user. @returns undefined if the address is taken */
export async function insertUser(
  db: Database,
  wanted: {
    readonly email: string;
    readonly hash: string;
    readonly accountName: string;
    readonly address: string;
  },
): Promise<{ readonly id: string; readonly email: string } | undefined> {
  const { email, hash, accountName, address } = wanted;
  const accountId = newId('acc');
  const id = newId('usr');
  try {
    await db.transaction().execute(async (tx) => {
      await tx.insertInto('accounts').values({ id: accountId, name: accountName }).execute();
      await tx
        .insertInto('users')
        .values({ id, account_id: accountId, email, password_hash: hash })
        .execute();
      await writeAudit(tx, { accountId, actor: `user:${id}`, action: 'account.opened', address });
    });
    return { id, email };
  } catch (error) {
    if (isDuplicate(error)) return undefined;
    throw error;
  }
}
