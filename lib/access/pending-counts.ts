import { type Tally, tallyCalls } from './usage-calls.ts';

/** Counts held by account, key and endpoint, also in an outage. Beyond, new ones are dropped. */
const COUNTS_HELD_MAX = 100_000;

/** Counts of one account that nobody waits for, and what they are made of. */
export interface PendingCount {
  calls: number;
  readonly tally: Tally;
}

export type CountEntry = readonly [accountId: string, count: PendingCount];

/** Counts that wait for the next statement. */
export interface PendingCounts {
  /** 1, or -1 to give back. */
  add(accountId: string, keyId: string, endpoint: string, calls: number): void;
  /** Without key and endpoint: 0 to be told the count, less to give back what nobody had. */
  addBare(accountId: string, calls: number): void;
  /** Takes the first accounts out, at most so many. */
  take(accountsMax: number): readonly CountEntry[];
  /** Puts back what was taken and surely not counted. */
  restore(entries: readonly CountEntry[]): void;
  readonly size: number;
  /** Calls that found no room, ever. */
  readonly dropped: number;
}

/** Nothing waits. */
export function createPendingCounts(heldMax = COUNTS_HELD_MAX): PendingCounts {
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

  function addBare(accountId: string, calls: number): void {
    const count = countOf(accountId);
    if (count === undefined) dropped += Math.abs(calls);
    else count.calls += calls;
  }

  return {
    add,
    addBare,
    take(accountsMax) {
      const entries = takeFirst(counts, accountsMax);
      for (const [, { tally }] of entries) {
        held -= 1;
        for (const endpoints of tally.values()) held -= endpoints.size;
      }
      return entries;
    },
    restore(entries) {
      for (const [accountId, { calls, tally }] of entries) {
        let bare = calls;
        for (const [key, endpoints] of tally)
          for (const [endpoint, n] of endpoints) {
            add(accountId, key, endpoint, n);
            bare -= n;
          }
        if (bare !== 0) addBare(accountId, bare);
      }
    },
    get size() {
      return counts.size;
    },
    get dropped() {
      return dropped;
    },
  };
}

/** Takes the entries that came first out of a map, at most so many. */
export function takeFirst<T>(map: Map<string, T>, max: number): (readonly [string, T])[] {
  const first: (readonly [string, T])[] = [];
  for (const entry of map) {
    if (first.length === max) break;
    first.push(entry);
    map.delete(entry[0]);
  }
  return first;
}
