import type { OffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { LatestPills } from '../log/latest-pills.ts';

export interface ResumeWindowDeps {
  readonly latestPills: Pick<LatestPills, 'rows'>;
  /** Maximum age of a position, in s. */
  readonly maxAgeS: number;
  readonly nowMs: () => number;
  /** First offsets that were appended at a time (Unix ms) or later, otherwise the end. */
  readonly offsetsAt: (timeMs: number) => Promise<Offsets>;
  readonly bounds: () => Promise<ReadonlyMap<number, OffsetBounds>>;
  readonly log: Pick<Log, 'warn'>;
}

/**
 * Creates the record of the positions that are recent enough for a promised resume; it covers
 * nothing until the first refresh.
 */
export function createResumeWindow(deps: ResumeWindowDeps) {
  const { latestPills, maxAgeS, nowMs, offsetsAt, bounds, log } = deps;
  let starts: Offsets = new Map();

  /** First offset that may lie in the window, as far as the rows show: after the last old row. */
  const afterOldRows = (partition: number, sinceMs: number): number => {
    let first = 0;
    for (const row of latestPills.rows()) {
      const isOld = row.partition === partition && row.receivedAt / 1000 < sinceMs;
      if (isOld) first = Math.max(first, row.offset + 1);
    }
    return first;
  };
  return {
    /**
     * Whether all pills after an offset lie in the window; false while that is not known.
     * @param after −1 at the beginning
     */
    covers(partition: number, after: number): boolean {
      const first = starts.get(partition);
      return first !== undefined && after + 1 >= first;
    },
    /** Updates the start of the window; on failure the previous start stays. Never rejects. */
    async refresh(): Promise<void> {
      const sinceMs = nowMs() - maxAgeS * 1000;
      try {
        const [held, found] = await Promise.all([bounds(), offsetsAt(sinceMs)]);
        const next = new Map<number, number>();
        for (const [partition, first] of found) {
          const low = held.get(partition)?.low ?? 0;
          // A log that was truncated inside the window does not show where it starts; clients that
          // were connected then must not pay for the lost part.
          const isCut = low > 0 && first <= low;
          next.set(partition, isCut ? Math.min(first, afterOldRows(partition, sinceMs)) : first);
        }
        starts = next;
      } catch (error) {
        log.warn({ err: error }, 'the resume window could not be refreshed');
      }
    },
  };
}
