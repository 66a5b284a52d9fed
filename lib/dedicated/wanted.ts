import { sql } from 'kysely';
import type { AccountAccess } from '../access/access.ts';
import { entitlementOf, tierTooLowText } from '../access/entitlement.ts';
import { readAccountAccesses } from '../accounts/account-row.ts';
import type { Database } from '../postgres/database.ts';
import type { EndCode } from './channel.ts';

/** A dedicated socket that has no end yet. */
export interface Wanted {
  readonly name: string;
  readonly accountId: string;
  readonly port: number;
  /** Why it must not run now; undefined = it must. */
  readonly denial: Denial | undefined;
}

export interface Denial {
  readonly code: EndCode;
  readonly message: string;
}

/** Removed rows are kept so long: the audit log keeps what was done for longer. */
const REMOVED_KEPT_DAYS = 30;
const PRUNED_MAX = 1_000;

/**
 * Reads what there is to run, and what must not. One whose overlap has ended is marked as removed.
 * @param nowMs Unix ms
 * @throws what the database says: then nothing is known, and nothing may be stopped
 */
export async function readWanted(db: Database, nowMs: number): Promise<readonly Wanted[]> {
  await sql`
    UPDATE dedicated_streams SET removed_at = expires_at
    WHERE removed_at IS NULL AND expires_at <= now()`.execute(db);
  const rows = await db
    .selectFrom('dedicated_streams')
    .select(['name', 'account_id', 'port'])
    .where('removed_at', 'is', null)
    .orderBy('created_at')
    .execute();
  // One query for all accounts, however many: this is read each second.
  const accounts = await readAccountAccesses(db, [...new Set(rows.map((row) => row.account_id))]);
  return rows.map(({ name, account_id: accountId, port }) => {
    return { name, accountId, port, denial: denialOf(accounts.get(accountId), nowMs) };
  });
}

/** Deletes rows that were removed long ago. */
export async function pruneRemoved(db: Database): Promise<void> {
  await sql`
    DELETE FROM dedicated_streams WHERE name IN (
      SELECT name FROM dedicated_streams
      WHERE removed_at < now() - make_interval(days => ${REMOVED_KEPT_DAYS}) LIMIT ${PRUNED_MAX}
    )`.execute(db);
}

function denialOf(account: AccountAccess | undefined, nowMs: number): Denial | undefined {
  if (account === undefined) return ENDED;
  const entitlement = entitlementOf(account, 'dedicated_stream', nowMs);
  if (entitlement.kind === 'granted') return undefined;
  if (entitlement.kind !== 'tier_too_low') return ENDED;
  const message = tierTooLowText(entitlement, 'dedicated sockets');
  return { code: 'tier_too_low', message };
}

const ENDED: Denial = {
  code: 'subscription_ended',
  message: 'The account has no subscription in force; GET /api/account tells why.',
};
