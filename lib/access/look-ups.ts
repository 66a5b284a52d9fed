import type { Log } from '../log.ts';

/** Look-ups in flight; one more is `unavailable` at once. */
const FLIGHTS_MAX = 500;
/** While the database does not answer so many go on trying; the rest is `unavailable` at once. */
const PROBES_MAX = 4;
/** An answer takes no longer, if only to say `unavailable`. */
const DEADLINE_MS = 1_000;
/** What changes while it is read is read again, so often. */
const READS_MAX = 3;

export interface LookUp<T> {
  readonly read: () => Promise<T>;
  /** The account that a result depends on; undefined = none. */
  readonly accountOf: (result: T) => string | undefined;
  /** Puts a result in memory; not called with one that a change has overtaken. */
  readonly keep: (result: T) => void;
}

/** Look-ups in flight: of those for the same thing there is one. */
export interface LookUps {
  /** @param handle what is looked for: the same handle always stands for the same type */
  run<T>(handle: string, lookUp: LookUp<T>): Promise<T | 'unavailable'>;
  /** An account has changed (undefined = any): what is being read of it may be old. */
  changed(accountId: string | undefined): void;
}

interface Flight {
  readonly result: Promise<unknown>;
  /** Accounts that have changed since the read began; undefined = all. */
  changed: Set<string> | undefined;
}

/** Nothing is in flight yet. */
export function createLookUps(log: Log): LookUps {
  const flights = new Map<string, Flight>();
  let isFailing = false;

  const settle = async <T>(flight: Flight, lookUp: LookUp<T>): Promise<T | 'unavailable'> => {
    const deadline = createDeadline();
    try {
      for (let reads = 0; reads < READS_MAX; reads += 1) {
        flight.changed = new Set();
        const result = await Promise.race([lookUp.read(), deadline.passed]);
        isFailing = false;
        const accountId = lookUp.accountOf(result);
        const isOvertaken = accountId !== undefined && (flight.changed?.has(accountId) ?? true);
        if (isOvertaken) continue;
        lookUp.keep(result);
        return result;
      }
      return 'unavailable';
    } catch (error) {
      if (!isFailing) log.warn({ err: error }, 'access cannot be looked up');
      isFailing = true;
      return 'unavailable';
    } finally {
      deadline.clear();
    }
  };

  return {
    run<T>(handle: string, lookUp: LookUp<T>): Promise<T | 'unavailable'> {
      const shared = flights.get(handle);
      if (shared !== undefined) return shared.result as Promise<T | 'unavailable'>;
      if (flights.size >= (isFailing ? PROBES_MAX : FLIGHTS_MAX)) {
        return Promise.resolve('unavailable');
      }
      const { promise, resolve } = newPromise<T | 'unavailable'>();
      const flight: Flight = { result: promise, changed: new Set() };
      flights.set(handle, flight);
      settle(flight, lookUp).then((result) => {
        flights.delete(handle);
        resolve(result);
      });
      return promise;
    },
    changed(accountId) {
      for (const flight of flights.values()) {
        if (accountId === undefined) flight.changed = undefined;
        else flight.changed?.add(accountId);
      }
    },
  };
}

function createDeadline() {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${DEADLINE_MS} ms`)), DEADLINE_MS);
  });
  // It may be rejected between two reads, when nobody waits for it.
  passed.catch(() => undefined);
  return { passed, clear: () => clearTimeout(timer) };
}

function newPromise<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
