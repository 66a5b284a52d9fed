/** Bounds of a semaphore. */
export interface TurnBounds {
  /** Turns at a time, in total and for each account. */
  readonly activeMax: number;
  readonly activeOfAccountMax: number;
  /** Callers that wait for a turn, in total and for each account, and the longest wait. */
  readonly waitingMax: number;
  readonly waitingOfAccountMax: number;
  readonly waitingMs: number;
}

/** A semaphore with bounds for each account, so that no account delays the others for long. */
export type Turns = ReturnType<typeof createTurns>;

interface Waiting {
  readonly accountId: string;
  readonly begin: () => void;
  readonly refuse: () => void;
}

/** Creates the semaphore, with all turns free. */
export function createTurns(bounds: TurnBounds) {
  const active = createCounts();
  const waitingOf = createCounts();
  // In order of arrival; a Set finds and removes a caller without a search.
  const queue = new Set<Waiting>();

  const hasRoom = (accountId: string) =>
    active.total() < bounds.activeMax && active.of(accountId) < bounds.activeOfAccountMax;
  const beginNext = () => {
    for (const one of queue) if (hasRoom(one.accountId)) return one.begin();
  };
  const beginTurn = (accountId: string) => {
    active.add(accountId, 1);
    let isActive = true;
    return () => {
      if (!isActive) return;
      isActive = false;
      active.add(accountId, -1);
      beginNext();
    };
  };
  const isFull = (accountId: string) =>
    queue.size >= bounds.waitingMax || waitingOf.of(accountId) >= bounds.waitingOfAccountMax;

  return {
    /** Waits for a turn. @returns the function that ends it; undefined if none came in time */
    begin(accountId: string): Promise<(() => void) | undefined> {
      if (hasRoom(accountId)) return Promise.resolve(beginTurn(accountId));
      if (isFull(accountId)) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const settle = (end: (() => void) | undefined) => {
          clearTimeout(timer);
          queue.delete(waiting);
          waitingOf.add(accountId, -1);
          resolve(end);
        };
        const refuse = () => settle(undefined);
        const waiting = { accountId, begin: () => settle(beginTurn(accountId)), refuse };
        const timer = setTimeout(refuse, bounds.waitingMs);
        queue.add(waiting);
        waitingOf.add(accountId, 1);
      });
    },
    /** Refuses all callers of an account that wait now. */
    refuseWaiting(accountId: string): void {
      for (const one of queue) if (one.accountId === accountId) one.refuse();
    },
  };
}

function createCounts() {
  const counts = new Map<string, number>();
  let total = 0;
  return {
    total: () => total,
    of: (accountId: string) => counts.get(accountId) ?? 0,
    add(accountId: string, change: 1 | -1): void {
      total += change;
      const count = (counts.get(accountId) ?? 0) + change;
      if (count === 0) counts.delete(accountId);
      else counts.set(accountId, count);
    },
  };
}
