import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Stored } from '../clickhouse/stored.ts';

/** How far the log is known to be. */
export interface Logged {
  readonly offsets: Offsets;
  /** That is how far it is now: the latest processor keeps up, and its view has been read. */
  readonly isCurrent: boolean;
}

/**
 * Up to when nothing that was received is missing from the table: `now` where all of the log is in
 * it, else the receive time of the newest pill of the partition that is furthest behind. While
 * nobody tells how far the log is, every partition may be behind.
 */
export function completeUntil(
  { offsets, isCurrent }: Logged,
  stored: Pick<Stored, 'offsets' | 'receivedAts'>,
  now: Micros,
): Micros {
  const partitions = new Set([...offsets.keys(), ...stored.offsets.keys()]);
  const doubtful = [...partitions].filter(
    (p) => !isCurrent || (stored.offsets.get(p) ?? -1) < (offsets.get(p) ?? -1),
  );
  if (!isCurrent && doubtful.length === 0) return 0;
  return Math.min(now, ...doubtful.map((p) => stored.receivedAts.get(p) ?? 0));
}
