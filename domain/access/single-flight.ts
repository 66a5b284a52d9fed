import type { Log } from '../../lib/log/log.ts';

/** Lookups in flight; beyond that, a lookup is `unavailable` at once. */
const FLIGHTS_MAX = 500;
/** Lookups in flight while the database does not answer; others are `unavailable` at once. */
const PROBES_MAX = 4;
/** Reads of one lookup: a row that changes while it is read is read again. */
const READS_MAX = 3;

interface Lookup<T> {
  readonly read: () => Promise<T>;
  /** The account that a result belongs to; undefined = none. */
  readonly accountOf: (result: T) => string | undefined;
  /** Caches a result; not called with a result that is outdated by a change. */
  readonly keep: (result: T) => void;
}

interface Flight {
  result: Promise<unknown> | undefined;
  /** Accounts that have changed since the read began; undefined = all. */
  changed: Set<string> | undefined;
}

/**
 * Coalesces concurrent lookups of the same thing into one.
 * @param deadlineMs a lookup is answered within this time, if only with `unavailable`
 */
export function createSingleFlight(log: Log, deadlineMs: number) {
  const flights = new Map<string, Flight>();
  let isFailing = false;

  const settle = async <T>(flight: Flight, lookup: Lookup<T>): Promise<T | 'unavailable'> => {
    const deadline = createDeadline(deadlineMs);
    try {
      for (let reads = 0; reads < READS_MAX; reads += 1) {
        flight.changed = new Set();
        const result = await Promise.race([lookup.read(), deadline.passed]);
        isFailing = false;
        const accountId = lookup.accountOf(result);
        const isOutdated = accountId !== undefined && (flight.changed?.has(accountId) ?? true);
        if (isOutdated) continue;
        lookup.keep(result);
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
    /** @param handle names the thing to look up: the same handle always stands for the same type */
    run<T>(handle: string, lookup: Lookup<T>): Promise<T | 'unavailable'> {
      const shared = flights.get(handle);
      if (shared !== undefined) return shared.result as Promise<T | 'unavailable'>;
      if (flights.size >= (isFailing ? PROBES_MAX : FLIGHTS_MAX)) {
        return Promise.resolve('unavailable');
      }
      const flight: Flight = { result: undefined, changed: new Set() };
      flights.set(handle, flight);
      const result = settle(flight, lookup).finally(() => flights.delete(handle));
      flight.result = result;
      return result;
    },
    /** An account (undefined = any) has changed: reads in flight of it may be outdated. */
    invalidate(accountId: string | undefined): void {
      for (const flight of flights.values()) {
        if (accountId === undefined) flight.changed = undefined;
        else flight.changed?.add(accountId);
      }
    },
  };
}

function createDeadline(deadlineMs: number) {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${deadlineMs} ms`)), deadlineMs);
  });
  // The deadline may pass between two reads, when nothing awaits this promise.
  passed.catch(() => undefined);
  return { passed, clear: () => clearTimeout(timer) };
}
