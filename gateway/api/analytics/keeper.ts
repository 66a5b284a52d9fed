import { LRUCache } from 'lru-cache';
import type { Table } from '../csv.ts';
import type { Turnstile } from '../turnstile.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** An answer as it is kept: written once, sent to all who ask within a moment. */
export interface Kept {
  readonly json: Buffer;
  readonly etag: string;
  readonly table: Table;
}

export type Answerer = () => Promise<{ readonly kept: Kept; readonly keepMs: number }>;

/**
 * Answers by question. @returns undefined when the account had no turn in time
 * @throws what `answer` throws
 */
export type Keep = (key: string, accountId: string, answer: Answerer) => Promise<Kept | undefined>;

/** A question that is asked, and not answered yet. */
interface Work {
  /** Turns that are waited for, by account: the first one is used, the others are given back. */
  readonly turns: Map<string, Promise<boolean>>;
  readonly done: Promise<Kept>;
  readonly resolve: (kept: Kept) => void;
  readonly reject: (error: unknown) => void;
  hasBegun: boolean;
}

function createWork(): Work {
  let resolve: Work['resolve'] = () => undefined;
  let reject: Work['reject'] = () => undefined;
  const done = new Promise<Kept>((...settle) => {
    [resolve, reject] = settle;
  });
  return { turns: new Map(), done, resolve, reject, hasBegun: false };
}

/**
 * Keeps answers for a moment; of equal questions asked together one is worked on. Each account waits
 * for a turn of its own until one of them has one, so that nobody waits for another's turn.
 * @param bytesMax of all that is kept; the oldest used leaves first
 */
export function createKeeper(
  turnstile: Turnstile,
  bytesMax: number = ANALYTICS_LIMITS.keptBytesMax,
): Keep {
  const cache = new LRUCache<string, Kept>({
    maxSize: bytesMax,
    // The table is made of the same values as the text.
    sizeCalculation: ({ json }) => json.length * 2,
  });
  const works = new Map<string, Work>();

  const begin = (key: string, work: Work, leave: () => void, answer: Answerer) => {
    work.hasBegun = true;
    answer()
      .then(({ kept, keepMs }) => {
        cache.set(key, kept, { ttl: keepMs });
        work.resolve(kept);
      })
      .catch(work.reject)
      .finally(() => {
        works.delete(key);
        leave();
      });
  };
  const waitForTurn = async (key: string, accountId: string, work: Work, answer: Answerer) => {
    const leave = await turnstile.enter(accountId);
    work.turns.delete(accountId);
    if (leave === undefined) {
      if (!work.hasBegun && work.turns.size === 0) works.delete(key);
    } else if (work.hasBegun) leave();
    else begin(key, work, leave, answer);
    return work.hasBegun;
  };

  return async (key, accountId, answer) => {
    const known = cache.get(key);
    if (known !== undefined) return known;
    let work = works.get(key);
    if (work === undefined) {
      work = createWork();
      works.set(key, work);
    }
    const { done, turns } = work;
    if (work.hasBegun) return done;
    let turn = turns.get(accountId);
    if (turn === undefined) {
      turn = waitForTurn(key, accountId, work, answer);
      turns.set(accountId, turn);
    }
    const own = turn.then((isWorkedOn) => (isWorkedOn ? done : undefined));
    return Promise.race([done, own]);
  };
}
