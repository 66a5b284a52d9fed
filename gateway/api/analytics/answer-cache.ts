import { LRUCache } from 'lru-cache';
import type { Turns } from '../../../lib/rate/turns.ts';
import type { Table } from '../server/csv.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** An answer, serialised once for all who request it within its time to live. */
export interface CachedAnswer {
  /** JSON, Arrow or Parquet. */
  readonly body: Buffer;
  readonly etag: string;
  readonly table: Table;
  /** Up to where the answer takes the log into account. */
  readonly position: string;
  /** Address of the next page; null: there is none. */
  readonly next: string | null;
}

export type Compute = () => Promise<{ readonly answer: CachedAnswer; readonly ttlMs: number }>;

/**
 * Answers by request key. @returns undefined if the account got no turn in time
 * @throws any error of `compute`
 */
export type AnswerCache = (
  key: string,
  accountId: string,
  compute: Compute,
) => Promise<CachedAnswer | undefined>;

/** A requested answer that is not computed yet. */
interface Pending {
  /** Accounts waiting for a turn: the first turn is used, the others are given back. */
  readonly turns: Map<string, Promise<boolean>>;
  readonly done: Promise<CachedAnswer>;
  readonly resolve: (answer: CachedAnswer) => void;
  readonly reject: (error: unknown) => void;
  hasBegun: boolean;
}

function createPending(): Pending {
  let resolve: Pending['resolve'] = () => undefined;
  let reject: Pending['reject'] = () => undefined;
  const done = new Promise<CachedAnswer>((...settle) => {
    [resolve, reject] = settle;
  });
  return { turns: new Map(), done, resolve, reject, hasBegun: false };
}

/**
 * Caches answers for a moment and computes concurrent equal requests once. Each account waits for a
 * turn of its own until one of them gets one, so no account waits for another's turn: lru-cache's
 * `fetch` supports only one caller, and drops a pending result when other entries fill the cache.
 * @param bytesMax of all cached answers; the least recently used is evicted first
 */
export function createAnswerCache(
  turns: Turns,
  bytesMax: number = ANALYTICS_LIMITS.cacheBytesMax,
): AnswerCache {
  const cache = new LRUCache<string, CachedAnswer>({
    maxSize: bytesMax,
    // The table holds the same values as the text.
    sizeCalculation: ({ body }) => body.length * 2,
  });
  const pendings = new Map<string, Pending>();

  const begin = (key: string, pending: Pending, leave: () => void, compute: Compute) => {
    pending.hasBegun = true;
    compute()
      .then(({ answer, ttlMs }) => {
        cache.set(key, answer, { ttl: ttlMs });
        pending.resolve(answer);
      })
      .catch(pending.reject)
      .finally(() => {
        pendings.delete(key);
        leave();
      });
  };
  const takeTurn = async (key: string, accountId: string, pending: Pending, compute: Compute) => {
    const leave = await turns.begin(accountId);
    pending.turns.delete(accountId);
    if (leave === undefined) {
      if (!pending.hasBegun && pending.turns.size === 0) pendings.delete(key);
    } else if (pending.hasBegun) leave();
    else begin(key, pending, leave, compute);
    return pending.hasBegun;
  };

  return async (key, accountId, compute) => {
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    let pending = pendings.get(key);
    if (pending === undefined) {
      pending = createPending();
      pendings.set(key, pending);
    }
    const { done } = pending;
    if (pending.hasBegun) return done;
    let turn = pending.turns.get(accountId);
    if (turn === undefined) {
      turn = takeTurn(key, accountId, pending, compute);
      pending.turns.set(accountId, turn);
    }
    const own = turn.then((hasBegun) => (hasBegun ? done : undefined));
    return Promise.race([done, own]);
  };
}
