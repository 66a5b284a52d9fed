import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { AccountAccess } from '../access/account-access.ts';
import { entitlementOf, tierTooLowText } from '../access/entitlement.ts';
import { suspensionOf } from '../access/suspension.ts';
import { readAccountAccesses } from '../accounts/account-row.ts';
import type { EndCode } from './channel.ts';

/** A dedicated socket that has not ended. */
export interface DesiredStream {
  readonly name: string;
  readonly accountId: string;
  readonly port: number;
  /** Why it must not run now; undefined = it must run. */
  readonly denial: Denial | undefined;
}

export interface Denial {
  readonly code: EndCode;
  readonly message: string;
}

/** Removed rows are kept this long; the audit log keeps the changes for longer. */
const REMOVED_KEPT_DAYS = 30;
const PRUNED_MAX = 1_000;

/**
 * Reads the sockets to run, and the sockets that must not run. A socket whose overlap has ended is
 * marked as removed. @param nowMs Unix ms
 * @throws any database error: then nothing is known, and no process may be stopped
 */
export async function readDesiredStreams(
  db: Database,
  nowMs: number,
): Promise<readonly DesiredStream[]> {
  await sql`
    UPDATE dedicated_streams SET removed_at = expires_at
    WHERE removed_at IS NULL AND expires_at <= now()`.execute(db);
  const rows = await db
    .selectFrom('dedicated_streams')
    .select(['name', 'account_id', 'port'])
    .where('removed_at', 'is', null)
    .orderBy('created_at')
    .execute();
  // A single query for all accounts, because this is read every second.
  const accounts = await readAccountAccesses(db, [...new Set(rows.map((row) => row.account_id))]);
  return rows.map(({ name, account_id: accountId, port }) => {
    return { name, accountId, port, denial: denialOf(accounts.get(accountId), nowMs) };
  });
}

/** Deletes rows that were removed more than 30 days ago. */
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
  if (entitlement.kind === 'account_suspended') {
    return { code: 'account_suspended', message: suspensionOf(account).detail };
  }
  if (entitlement.kind !== 'tier_too_low') return ENDED;
  const message = tierTooLowText(entitlement, 'dedicated sockets');
  return { code: 'tier_too_low', message };
}

const ENDED: Denial = {
  code: 'subscription_ended',
  message: 'The account has no active subscription. Subscribe at POST /api/subscription/checkout.',
};
