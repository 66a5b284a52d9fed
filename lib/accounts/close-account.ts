import { sql, type Transaction } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { lockAccount, readSubscriptionRow } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';
import type { BillingProvider } from './billing-provider.ts';
import { revokeAllKeys } from './keys.ts';

/** A closed account is erased so many days later. */
export const ERASED_AFTER_DAYS = 30;
/** Accounts that one run erases, each with all its rows; the rest is the next run's. */
const ERASED_MAX = 10;

/** When an account that was closed then is erased, or soon after. */
export function erasureOf(closedAt: Date): Date {
  return new Date(closedAt.getTime() + ERASED_AFTER_DAYS * 86_400_000);
}

/** What accounts are closed with. */
export interface CloseAccountParts {
  readonly db: Database;
  readonly billing: Pick<BillingProvider, 'name' | 'cancel' | 'voidCheckout'>;
}

/**
 * Closes an account: keys are dead, sessions and the subscription ended, payments void at once, and
 * nothing is renewed or reminded of any more; its data goes 30 days later. Again it changes nothing.
 * @throws what the provider says; then nothing has changed here
 */
export async function closeAccount(
  { db, billing }: CloseAccountParts,
  { accountId, ...requester }: Requester & { readonly accountId: string },
): Promise<void> {
  await endAtProvider({ db, billing }, accountId);
  await db.transaction().execute(async (tx) => {
    if (!(await lockAccount(tx, accountId))) return;
    const closed = await tx
      .updateTable('accounts')
      .set({ status: 'closed', closed_at: sql<Date>`now()` })
      .where('id', '=', accountId)
      .where('status', '<>', 'closed')
      .returning('closed_at')
      .executeTakeFirst();
    if (closed === undefined) return;
    await revokeAllKeys(tx, { accountId, ...requester });
    await endUse(tx, accountId);
    const tier = await endPayment(tx, accountId);
    await tellClosed(tx, accountId, { tier, erased_at: erasureOf(closed.closed_at!) });
    await writeAudit(tx, {
      accountId,
      ...requester,
      action: 'account.closed',
      detail: tier === null ? {} : { subscription_ended: tier },
    });
  });
}

async function endAtProvider({ db, billing }: CloseAccountParts, accountId: string): Promise<void> {
  const open = await db
    .selectFrom('checkouts')
    .select('id')
    .where('account_id', '=', accountId)
    .where('status', 'in', UNPAID)
    .where('provider', '=', billing.name)
    .execute();
  for (const { id } of open) await billing.voidCheckout(id);
  const paid = await readSubscriptionRow(db, accountId);
  if (paid === undefined || paid.status === 'ended' || paid.provider !== billing.name) return;
  await billing.cancel({ accountId, reference: paid.provider_reference }, 'now');
}

/** Checkouts that may still be paid. */
const UNPAID = ['open', 'failed'] as const;

/** Ends sessions, and what was mailed to begin others. */
async function endUse(tx: Transaction<Tables>, accountId: string): Promise<void> {
  const users = tx.selectFrom('users').select('id').where('account_id', '=', accountId);
  await tx.deleteFrom('sessions').where('user_id', 'in', users).execute();
  await tx.deleteFrom('mail_tokens').where('user_id', 'in', users).execute();
  await tx.deleteFrom('stream_tickets').where('account_id', '=', accountId).execute();
}

/** Ends the subscription, and payments that were begun. @returns the tier that ended */
async function endPayment(tx: Transaction<Tables>, accountId: string): Promise<string | null> {
  await tx
    .updateTable('checkouts')
    .set({ status: 'void' })
    .where('account_id', '=', accountId)
    .where('status', 'in', UNPAID)
    .execute();
  const ended = await tx
    .updateTable('subscriptions')
    .set({ status: 'ended', past_due_since: null })
    .where('account_id', '=', accountId)
    .where('status', '<>', 'ended')
    .returning('tier')
    .executeTakeFirst();
  return ended?.tier ?? null;
}

/** What was still to be mailed is not true any more: this is said instead. */
async function tellClosed(
  tx: Transaction<Tables>,
  accountId: string,
  data: { readonly tier: string | null; readonly erased_at: Date },
): Promise<void> {
  await tx
    .updateTable('account_events')
    .set({ parked_at: sql<Date>`now()` })
    .where('account_id', '=', accountId)
    .where('mailed_at', 'is', null)
    .where('parked_at', 'is', null)
    .execute();
  await tx
    .insertInto('account_events')
    .values({
      account_id: accountId,
      type: 'account.closed',
      dedupe: `account.closed/${data.erased_at.toISOString()}`,
      data: JSON.stringify(data),
    })
    .execute();
}

/**
 * Erases accounts that were closed 30 days ago, a few at a time; the audit log stays.
 * @returns how many
 */
export async function eraseClosedAccounts(db: Database): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM accounts WHERE id IN (
      SELECT id FROM accounts
      WHERE status = 'closed' AND closed_at < now() - make_interval(days => ${ERASED_AFTER_DAYS})
      ORDER BY closed_at LIMIT ${ERASED_MAX} FOR UPDATE SKIP LOCKED)`.execute(db);
  return Number(numAffectedRows);
}
