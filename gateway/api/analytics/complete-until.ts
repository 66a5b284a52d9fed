import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** How far the log is known to be. */
export interface Logged {
  readonly offsets: Offsets;
  /** That is how far it is now: the latest processor keeps up, and its view has been read. */
  readonly isCurrent: boolean;
}

/** How far one partition is in the table. */
export interface StoredPartition {
  readonly offset: number;
  /** Receive time of its newest pill; undefined when it has none. */
  readonly receivedAt: Micros | undefined;
}

/**
 * Up to when nothing that was received is missing from the table: `now` where all of the log is in
 * it, else the receive time of the newest pill of the partition that is furthest behind. While
 * nobody tells how far the log is, every partition may be behind.
 */
export function completeUntil(
  { offsets, isCurrent }: Logged,
  stored: ReadonlyMap<number, StoredPartition>,
  now: Micros,
): Micros {
  const partitions = new Set([...offsets.keys(), ...stored.keys()]);
  const doubtful = [...partitions].filter(
    (p) => !isCurrent || (stored.get(p)?.offset ?? -1) < (offsets.get(p) ?? -1),
  );
  if (!isCurrent && doubtful.length === 0) return 0;
  return Math.min(now, ...doubtful.map((p) => stored.get(p)?.receivedAt ?? 0));
}
