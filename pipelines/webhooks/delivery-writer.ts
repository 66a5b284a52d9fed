import { setTimeout as sleep } from 'node:timers/promises';
import { GroupCommit } from '../../lib/batch/group-commit.ts';
import type { Log } from '../../lib/log/log.ts';
import { isDatabaseAway } from '../../lib/postgres/database.ts';
import { backoffMs } from '../../lib/timing/backoff.ts';
import type { DeliveryChange } from './delivery-changes.ts';
import { FencedError } from './fencing.ts';

/** Changes of one transaction, and their bytes: it ends long before the statement time-out. */
const CHANGES_MAX = 500;
const BYTES_MAX = 4 * 1024 * 1024;

export type DeliveryWriter = ReturnType<typeof createDeliveryWriter>;

/**
 * Writes the changes of all delivery queues and drains, one transaction at a time. While the database
 * is away the writer retries forever: waiting changes are bounded by the pills
 * that are not settled, and reading of the log pauses.
 */
export function createDeliveryWriter(deps: {
  /** Makes all changes in one transaction. @throws FencedError: then no change was made */
  apply(changes: readonly DeliveryChange[]): Promise<void>;
  readonly log: Log;
  onFenced(partitions: readonly number[]): void;
  onFatal(error: Error): void;
}) {
  let healthy = true;

  const commit = async (changes: readonly DeliveryChange[], signal: AbortSignal) => {
    const written = new Set<DeliveryChange>();
    let left = changes;
    for (let attempts = 0; left.length > 0; attempts += 1) {
      try {
        await deps.apply(left);
        healthy = true;
        for (const change of left) written.add(change);
        break;
      } catch (error) {
        if (error instanceof FencedError) {
          deps.onFenced(error.partitions);
          left = left.filter((change) => !isOf(change, error.partitions));
          continue;
        }
        healthy = false;
        if (!isDatabaseAway(error) && !isTransient(error)) deps.onFatal(error as Error);
        if (signal.aborted) break;
        deps.log.warn({ err: error, attempts }, 'deliveries cannot be stored; waiting');
        const waitMs = 50 + backoffMs(attempts, { firstMs: 100, maxMs: 2_000 });
        await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      }
    }
    return changes.map((change) => written.has(change));
  };

  const group = new GroupCommit<DeliveryChange, boolean>({
    commit,
    itemsMax: CHANGES_MAX,
    sizeMax: BYTES_MAX,
    sizeOf: (change) => (change.kind === 'store' ? change.delivery.message.body.length : 0),
  });
  return {
    /**
     * @returns whether it was written; false: another dispatcher owns some of its pills, or the
     * process is stopping
     */
    apply: (change: DeliveryChange): Promise<boolean> => group.add(change).catch(() => false),
    /** Whether the last transaction was committed. */
    isHealthy: () => healthy,
    /** Waits for waiting changes until the deadline. */
    close: (deadlineMs: number) => group.close(deadlineMs),
  };
}

/** Serialisation failure, deadlock, or a row inserted meanwhile: a retry may succeed. */
function isTransient(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^(?:40...|23503)$/.test(code);
}

function isOf(change: DeliveryChange, partitions: readonly number[]): boolean {
  return (
    change.kind === 'store' &&
    change.delivery.joined.some(({ partition }) => partitions.includes(partition))
  );
}
