import { type Tally, tallyCalls } from './usage-writer.ts';

/** Counts held by account, key and endpoint, also in an outage. Beyond that, calls are dropped. */
const COUNTS_HELD_MAX = 100_000;

/** Calls of one account that no caller waits for, in total and by key and endpoint. */
interface PendingCount {
  calls: number;
  readonly tally: Tally;
}

export type CountEntry = readonly [accountId: string, count: PendingCount];

/** Counts that wait for the next statement. */
export function createPendingCounts(heldMax = COUNTS_HELD_MAX) {
  const counts = new Map<string, PendingCount>();
  let held = 0;
  let dropped = 0;

  function countOf(accountId: string): PendingCount | undefined {
    const known = counts.get(accountId);
    if (known !== undefined || held >= heldMax) return known;
    const count = { calls: 0, tally: new Map() };
    counts.set(accountId, count);
    held += 1;
    return count;
  }

  /** @param calls 1, or -1 to give back */
  function add(accountId: string, keyId: string, endpoint: string, calls: number): void {
    const count = countOf(accountId);
    const isFull = held >= heldMax && count?.tally.get(keyId)?.has(endpoint) !== true;
    if (count === undefined || isFull) {
      dropped += Math.abs(calls);
      return;
    }
    count.calls += calls;
    if (tallyCalls(count.tally, keyId, endpoint, calls)) held += 1;
  }

  /** Without key and endpoint: 0 to learn the count, below 0 to give back unused calls. */
  function addTotal(accountId: string, calls: number): void {
    const count = countOf(accountId);
    if (count === undefined) dropped += Math.abs(calls);
    else count.calls += calls;
  }

  return {
    add,
    addTotal,
    /** Removes and returns the oldest accounts, at most `accountsMax`. */
    take(accountsMax: number): readonly CountEntry[] {
      const entries = takeFirst(counts, accountsMax);
      for (const [, { tally }] of entries) {
        held -= 1;
        for (const endpoints of tally.values()) held -= endpoints.size;
      }
      return entries;
    },
    /** Puts back entries that certainly were not counted. */
    restore(entries: readonly CountEntry[]): void {
      for (const [accountId, { calls, tally }] of entries) {
        let rest = calls;
        for (const [key, endpoints] of tally)
          for (const [endpoint, n] of endpoints) {
            add(accountId, key, endpoint, n);
            rest -= n;
          }
        if (rest !== 0) addTotal(accountId, rest);
      }
    },
    get size() {
      return counts.size;
    },
    /** Total of calls dropped for lack of room. */
    get dropped() {
      return dropped;
    },
  };
}

/** Removes and returns the oldest entries of a map, at most `max`. */
export function takeFirst<T>(map: Map<string, T>, max: number): (readonly [string, T])[] {
  const first: (readonly [string, T])[] = [];
  for (const entry of map) {
    if (first.length === max) break;
    first.push(entry);
    map.delete(entry[0]);
  }
  return first;
}
