import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import { raise } from './account-events.ts';
import { lockAccount, readSubscriptionRow } from './account-row.ts';
import { type AccountRequest, writeAudit } from './audit.ts';
import type { BillingProvider } from './billing-provider.ts';
import { revokeAllKeys } from './keys.ts';

/** Days from the closing of an account to its erasure. */
export const ERASED_AFTER_DAYS = 30;
/** Accounts erased per run, each with all its rows; the remaining ones wait for the next run. */
const ERASED_MAX = 10;

/** The earliest erasure of an account closed at this time. */
export function erasureTime(closedAt: Date): Date {
  return new Date(closedAt.getTime() + ERASED_AFTER_DAYS * 86_400_000);
}

interface CloseAccountDeps {
  readonly db: Database;
  readonly billing: Pick<BillingProvider, 'name' | 'cancel' | 'voidCheckout'>;
}

/**
 * Closes an account: its keys, authentication schemes, sessions and subscription end at once, open
 * payments become void, and renewals and reminders stop; its data is erased 30 days later. Idempotent.
 * @throws any error of the provider; then nothing has changed here
 */
export async function closeAccount(
  { db, billing }: CloseAccountDeps,
  { accountId, ...requester }: AccountRequest,
): Promise<void> {
  await endAtProvider({ db, billing }, accountId);
  await inTurn(db, accountId, async (tx) => {
    if (!(await lockAccount(tx, accountId))) return;
    const closed = await tx
      .updateTable('accounts')
      .set({ status: 'closed', closed_at: sql<Date>`now()`, keys_refused: false })
      .where('id', '=', accountId)
      .where('status', '<>', 'closed')
      .returning('closed_at')
      .executeTakeFirst();
    if (closed === undefined) return;
    // Before the first audit entry: a change of password also locks sessions, then the audit chain.
    await endSessions(tx, accountId);
    await revokeAllKeys(tx, { accountId, ...requester });
    await removeSchemes(tx, accountId);
    const tier = await endPayment(tx, accountId);
    await raiseAccountClosed(tx, accountId, { tier, erased_at: erasureTime(closed.closed_at!) });
    await writeAudit(tx, {
      accountId,
      ...requester,
      action: 'account.closed',
      detail: tier === null ? {} : { subscription_ended: tier },
    });
  });
}

async function endAtProvider({ db, billing }: CloseAccountDeps, accountId: string): Promise<void> {
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

/** States of a checkout that can still be paid. */
const UNPAID = ['open', 'failed'] as const;

/** Ends sessions, and voids mailed tokens and stream tickets. */
async function endSessions(tx: Transaction<Tables>, accountId: string): Promise<void> {
  const users = tx.selectFrom('users').select('id').where('account_id', '=', accountId);
  await tx.deleteFrom('sessions').where('user_id', 'in', users).execute();
  await tx.deleteFrom('mail_tokens').where('user_id', 'in', users).execute();
  await tx.deleteFrom('stream_tickets').where('account_id', '=', accountId).execute();
}

/** Removes the authentication schemes, as the keys end. */
async function removeSchemes(tx: Transaction<Tables>, accountId: string): Promise<void> {
  await tx
    .updateTable('authentication_schemes')
    .set({ is_on: false, removed_at: sql<Date>`now()`, sealed: null })
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
    .execute();
}

/** Ends the subscription and voids open payments. @returns the tier that ended */
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

/** Replaces mails that are still waiting, which are no longer true, by the mail about the closing. */
async function raiseAccountClosed(
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
  await raise(tx, accountId, 'account.closed', data.erased_at.toISOString(), data);
}

/**
 * Reopens a closed account before its erasure. Its users can sign in again; keys and subscription
 * stay ended, webhook endpoints are as they were. An account that was suspended when it was closed
 * is suspended again. @returns its status; undefined if it is not closed, or due for erasure
 */
export function reopenAccount(
  db: Database,
  request: AccountRequest,
): Promise<'active' | 'suspended' | undefined> {
  const { accountId } = request;
  return inTurn(db, accountId, async (tx) => {
    if (!(await lockAccount(tx, accountId))) return undefined;
    const { rows } = await sql<{ status: 'active' | 'suspended' }>`
      UPDATE accounts SET closed_at = NULL,
        status = CASE WHEN suspended_reason IS NULL THEN 'active' ELSE 'suspended' END
      WHERE id = ${accountId} AND status = 'closed'
        AND closed_at >= now() - make_interval(days => ${ERASED_AFTER_DAYS})
      RETURNING status`.execute(tx);
    const status = rows[0]?.status;
    if (status === undefined) return undefined;
    await raise(tx, accountId, 'account.reopened', newId('chg'), { status });
    await writeAudit(tx, { ...request, action: 'account.reopened', detail: { status } });
    return status;
  });
}

/** Erases accounts closed 30 days ago, at most 10 per run; the audit log stays. @returns how many */
export async function eraseClosedAccounts(db: Database): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM accounts WHERE id IN (
      SELECT id FROM accounts
      WHERE status = 'closed' AND closed_at < now() - make_interval(days => ${ERASED_AFTER_DAYS})
      ORDER BY closed_at LIMIT ${ERASED_MAX} FOR UPDATE SKIP LOCKED)`.execute(db);
  return Number(numAffectedRows);
}
