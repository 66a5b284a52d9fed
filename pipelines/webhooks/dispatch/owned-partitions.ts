import type { Log } from '../../../lib/log/log.ts';
import { LIMITS } from '../limits.ts';
import type { DispatchPartition } from './dispatch-partition.ts';

/** After another dispatcher takes a partition, the group takes at most so long to revoke it here. */
const REVOKED_WITHIN_MS = 12_000;

export type OwnedPartitions = ReturnType<typeof createOwnedPartitions>;

/** The partitions that this dispatcher reads. */
export function createOwnedPartitions(deps: {
  /** Partitions of the whole log. */
  readonly partitions: number;
  readonly log: Log;
  /** Whether the group still assigns the partition to this process. */
  isAssigned(partition: number): boolean;
  onFatal(error: Error): void;
}) {
  const byNumber = new Map<number, DispatchPartition>();
  /** The group gave the partition to another dispatcher. */
  const revoke = (partition: number) => {
    byNumber.get(partition)?.markLost();
    byNumber.delete(partition);
  };
  const unsettled = () => {
    let sum = 0;
    for (const { offsets } of byNumber.values()) sum += offsets.size;
    return sum;
  };
  return {
    byNumber: byNumber as ReadonlyMap<number, DispatchPartition>,
    add: (partition: number, state: DispatchPartition) => void byNumber.set(partition, state),
    revoke,
    /** A write has shown that another dispatcher took the partitions. */
    fence(partitions: readonly number[]): void {
      for (const partition of partitions) {
        deps.log.warn({ partition }, 'another dispatcher has taken the partition');
        revoke(partition);
        setTimeout(() => {
          if (!deps.isAssigned(partition) || byNumber.has(partition)) return;
          const message = `Partition ${partition} is assigned to us, but its row names another owner.`;
          deps.onFatal(new Error(message));
        }, REVOKED_WITHIN_MS).unref();
      }
    },
    /** Share of the log that is read here. */
    share: () => Math.max(1, byNumber.size) / deps.partitions,
    /** Whether reading must pause because too many pills are neither delivered nor stored. */
    isFull: () => unsettled() > LIMITS.unsettledMax,
    unsettled,
  };
}
