import { sql } from 'kysely';
import type { DestinationRow } from '../../domain/destinations/destination.ts';
import type { Database } from '../../lib/postgres/database.ts';

export type Health = ReturnType<typeof createHealth>;

/**
 * What the owner of a destination sees of its deliveries. A fault of the platform is a state of its
 * own, and never counts as a failure of the receiving system.
 */
export function createHealth(db: Database, row: DestinationRow, owner: string) {
  let failingSince = row.failing_since;
  let faultSince = row.fault_since;
  let deliveredAt = row.last_delivered_at;
  let isWritten = true;
  return {
    delivered(): void {
      deliveredAt = new Date();
      failingSince = null;
      faultSince = null;
      isWritten = false;
    },
    failed(): void {
      failingSince ??= new Date();
      faultSince = null;
      isWritten = false;
    },
    fault(): void {
      faultSince ??= new Date();
      isWritten = false;
    },
    /** The platform works, whether or not anything was to be delivered. */
    working(): void {
      if (faultSince === null) return;
      faultSince = null;
      isWritten = false;
    },
    isFailing: () => failingSince !== null,
    async write(): Promise<void> {
      if (isWritten) return;
      isWritten = true;
      try {
        await sql`UPDATE destinations SET failing_since = ${failingSince}, fault_since = ${faultSince},
            last_delivered_at = ${deliveredAt}
          WHERE id = ${row.id} AND owner = ${owner}`.execute(db);
      } catch (error) {
        isWritten = false;
        throw error;
      }
    },
  };
}
