import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { entitlementOf } from '../../domain/access/entitlement.ts';
import { readAccountAccesses } from '../../domain/accounts/account-row.ts';
import { writeAudit } from '../../domain/accounts/audit.ts';
import type { DestinationRow } from '../../domain/destinations/destination.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { LIMITS } from './limits.ts';

/** A row, whether it should be delivered to, and whether no process has it. */
export interface KnownDestination {
  readonly row: DestinationRow;
  readonly isWanted: boolean;
  readonly isFree: boolean;
}

export type Leases = ReturnType<typeof createLeases>;

/**
 * Which process delivers to which destination. A lease that is not renewed ends by the clock of
 * PostgreSQL; each take has an owner name of its own, which all writes of its holder must match.
 */
export function createLeases(db: Database) {
  const process = randomUUID();
  let takes = 0;
  /** In brackets, since it stands beside other conditions. */
  const isFree = sql<boolean>`(owner IS NULL OR owner_until < now())`;
  const until = sql<Date>`now() + make_interval(secs => ${LIMITS.leaseS})`;
  return {
    /** All destinations. Those of accounts without the tier are ended, which an audit entry says. */
    async read(): Promise<ReadonlyMap<string, KnownDestination>> {
      const rows = await db
        .selectFrom('destinations')
        .selectAll()
        .select(isFree.as('is_free'))
        .execute();
      const access = await readAccountAccesses(db, [...new Set(rows.map((row) => row.account_id))]);
      const known = new Map<string, KnownDestination>();
      for (const { is_free: isFreeNow, ...row } of rows) {
        const account = access.get(row.account_id);
        const isEntitled =
          account !== undefined &&
          entitlementOf(account, 'destinations', Date.now()).kind === 'granted';
        if (!isEntitled && row.paused_by !== 'entitlement') await end(db, row);
        known.set(row.id, {
          row,
          isFree: isFreeNow,
          isWanted: isEntitled && row.paused_by === null,
        });
      }
      return known;
    },

    /** @returns the owner name; undefined = another process was first */
    async take(id: string): Promise<string | undefined> {
      takes += 1;
      const owner = `${process}/${takes}`;
      const { numUpdatedRows } = await db
        .updateTable('destinations')
        .set({ owner, owner_until: until })
        .where('id', '=', id)
        .where(isFree)
        .executeTakeFirst();
      return numUpdatedRows === 1n ? owner : undefined;
    },

    /** @returns the owners that still have their lease */
    async renew(owners: readonly string[]): Promise<ReadonlySet<string>> {
      if (owners.length === 0) return new Set();
      const rows = await db
        .updateTable('destinations')
        .set({ owner_until: until })
        .where('owner', 'in', owners)
        .returning('owner')
        .execute();
      return new Set(rows.flatMap(({ owner }) => owner ?? []));
    },

    async release(owner: string): Promise<void> {
      await db
        .updateTable('destinations')
        .set({ owner: null, owner_until: null })
        .where('owner', '=', owner)
        .execute();
    },
  };
}

/**
 * Ends a destination whose account no longer has the tier; a pause by the owner becomes such an end,
 * since pills of the time without the tier are never delivered.
 */
async function end(db: Database, { id, account_id: accountId }: DestinationRow): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('destinations')
      .set({ paused_by: 'entitlement', failing_since: null })
      .where('id', '=', id)
      .where('paused_by', 'is distinct from', 'entitlement')
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return;
    await writeAudit(tx, { actor: 'system', accountId, action: 'destination.ended', target: id });
  });
}
