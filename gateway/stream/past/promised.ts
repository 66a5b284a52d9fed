import type { OffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Board } from './board.ts';

export interface PromisedOptions {
  readonly board: Pick<Board, 'rows'>;
  /** How old a position may be, in s. */
  readonly maxAgeS: number;
  readonly nowMs: () => number;
  /** Offsets of the first records that were appended at a time (Unix ms) or later, else the end. */
  readonly offsetsAt: (timeMs: number) => Promise<Offsets>;
  readonly bounds: () => Promise<ReadonlyMap<number, OffsetBounds>>;
  readonly log: Pick<Log, 'warn'>;
}

/** Knows which positions are young enough that resuming from them is promised. */
export interface Promised {
  /** Whether all after an offset is. No, while it is not known. @param after −1 at the beginning */
  covers(partition: number, after: number): boolean;
  /** Looks anew where the promise begins; in vain the former place stands. Never rejects. */
  refresh(): Promise<void>;
}

/** Creates one that covers nothing until it was refreshed. */
export function createPromised(options: PromisedOptions): Promised {
  const { board, maxAgeS, nowMs, offsetsAt, bounds, log } = options;
  let begins: Offsets = new Map();

  /** First offset that may be as young, as far as rows tell: what is newer than an old one. */
  const afterOldRows = (partition: number, sinceMs: number): number => {
    let first = 0;
    for (const row of board.rows()) {
      const isOld = row.partition === partition && row.receivedAt / 1000 < sinceMs;
      if (isOld) first = Math.max(first, row.offset + 1);
    }
    return first;
  };
  return {
    covers(partition, after) {
      const first = begins.get(partition);
      return first !== undefined && after + 1 >= first;
    },
    async refresh() {
      const sinceMs = nowMs() - maxAgeS * 1000;
      try {
        const [held, found] = await Promise.all([bounds(), offsetsAt(sinceMs)]);
        const next = new Map<number, number>();
        for (const [partition, first] of found) {
          const low = held.get(partition)?.low ?? 0;
          // A log that was cut within the time cannot tell: whoever was there must not pay for it.
          const isCut = low > 0 && first <= low;
          next.set(partition, isCut ? Math.min(first, afterOldRows(partition, sinceMs)) : first);
        }
        begins = next;
      } catch (error) {
        log.warn({ err: error }, 'it is not known which positions are young enough');
      }
    },
  };
}
