import { setTimeout as sleep } from 'node:timers/promises';
import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { HISTORY_LIMITS } from './limits.ts';
import type { Select } from './statements.ts';

/** How far the log is in history. */
export interface Stored {
  /** Every pill with effect up to and including these is there. */
  readonly offsets: Offsets;
  /** Of the newest of them. */
  readonly receivedAt: Micros | undefined;
}

export interface Progress {
  /** At most 0.2 s old. @throws NoAnswer */
  now(): Promise<Stored>;
  /**
   * Waits, for 3 s at most, until the pills up to these offsets are there.
   * @returns how far it is, also when the wait was in vain; undefined: too many wait
   * @throws NoAnswer
   */
  reach(wanted: Offsets, accountId: string): Promise<Stored | undefined>;
}

/** Watches what the sink tells; asks only while somebody wants to know, one statement at a time. */
export function createProgress(select: Select, epoch: string): Progress {
  let known: { readonly stored: Stored; readonly atMs: number } | undefined;
  let asking: Promise<Stored> | undefined;
  const waitingOf = new Map<string, number>();
  let waiting = 0;

  const ask = async (): Promise<Stored> => {
    const atMs = performance.now();
    const rows = await select<{ partition: number; last: number; received: number | null }>(
      `SELECT partition, max(offset) AS last, toUnixTimestamp64Micro(max(received_at)) AS received
       FROM pills_progress WHERE epoch = {epoch:String} GROUP BY partition`,
      { epoch },
    );
    const receivedAt = Math.max(-1, ...rows.map(({ received }) => received ?? -1));
    const stored = {
      offsets: new Map(rows.map(({ partition, last }) => [partition, last])),
      receivedAt: receivedAt < 0 ? undefined : receivedAt,
    };
    known = { stored, atMs };
    return stored;
  };
  const now = () => {
    if (known !== undefined && performance.now() - known.atMs < HISTORY_LIMITS.progressMaxAgeMs) {
      return Promise.resolve(known.stored);
    }
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };

  return {
    now,
    async reach(wanted, accountId) {
      const deadline = performance.now() + HISTORY_LIMITS.behindWaitMs;
      let stored = await now();
      if (has(stored, wanted)) return stored;
      const { waitersMax, waitersOfAccountMax } = HISTORY_LIMITS;
      const own = () => waitingOf.get(accountId) ?? 0;
      if (waiting >= waitersMax || own() >= waitersOfAccountMax) return undefined;
      waiting += 1;
      waitingOf.set(accountId, own() + 1);
      try {
        while (!has(stored, wanted) && performance.now() < deadline) {
          await sleep(HISTORY_LIMITS.behindPollMs);
          stored = await now();
        }
        return stored;
      } finally {
        waiting -= 1;
        if (own() === 1) waitingOf.delete(accountId);
        else waitingOf.set(accountId, own() - 1);
      }
    },
  };
}

/** Whether the pills up to these offsets are there. */
export function has({ offsets }: Stored, wanted: Offsets): boolean {
  return [...wanted].every(([partition, offset]) => (offsets.get(partition) ?? -1) >= offset);
}
