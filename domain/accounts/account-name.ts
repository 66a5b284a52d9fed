import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import { type AccountRequest, writeAudit } from './audit.ts';

/** Gives an account another name. The same name again changes nothing. @throws any database error */
export async function renameAccount(
  db: Database,
  { accountId, actor, address, name }: AccountRequest & { readonly name: string },
): Promise<void> {
  await inTurn(db, accountId, async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('accounts')
      .set({ name })
      .where('id', '=', accountId)
      .where('name', '<>', name)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return;
    await writeAudit(tx, {
      accountId,
      actor,
      address,
      action: 'account.renamed',
      detail: { name },
    });
  });
}
