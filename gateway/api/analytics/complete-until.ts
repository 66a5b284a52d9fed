import type { Micros } from '../../../schemas/timestamp.ts';
import type { Stored } from '../clickhouse/stored.ts';
import type { LogEnd } from '../log-end.ts';

/**
 * Up to when nothing that was in the log is missing from the table: the moment of the log's end
 * where the table has it all, else the receive time of the newest pill of the partition that is
 * furthest behind. Of a log that never told its end nothing is claimed.
 */
export function completeUntil(
  end: Pick<LogEnd, 'offsets' | 'at'> | undefined,
  stored: Pick<Stored, 'offsets' | 'receivedAts'>,
): Micros {
  if (end === undefined) return 0;
  const behind = [...end.offsets].filter(
    ([partition, offset]) => (stored.offsets.get(partition) ?? -1) < offset,
  );
  return Math.min(end.at, ...behind.map(([partition]) => stored.receivedAts.get(partition) ?? 0));
}
