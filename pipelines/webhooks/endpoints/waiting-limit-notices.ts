import type { Log } from '../../../lib/log/log.ts';
import { createCounter } from '../../../lib/metrics/metrics.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** The owner may have replayed and so cleared the notice: it is written again after this long. */
const REPEATED_AFTER_MS = 10_000;

const discardedTotal = createCounter({
  name: 'pillole_webhook_pills_not_kept_total',
  help: 'Pills not stored for an endpoint, because too many messages waited for it.',
});

/** Writes `backlog_full_since` of endpoints whose pills were discarded; a replay clears it. */
export function createWaitingLimitNotices(db: Database, log: Log) {
  const writtenMs = new Map<string, number>();
  return {
    onDiscarded(id: string, receivedAt: Micros, pills: number): void {
      discardedTotal.inc(pills);
      const now = performance.now();
      if (now - (writtenMs.get(id) ?? Number.NEGATIVE_INFINITY) < REPEATED_AFTER_MS) return;
      writtenMs.set(id, now);
      db.updateTable('webhook_endpoints')
        .set({ backlog_full_since: new Date(receivedAt / 1_000) })
        .where('id', '=', id)
        .where('backlog_full_since', 'is', null)
        .execute()
        .catch((error) => log.warn({ err: error }, 'backlog_full_since was not written'));
    },
    forget(endpointId: string): void {
      writtenMs.delete(endpointId);
    },
  };
}
