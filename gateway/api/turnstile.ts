/** Lets a bounded number in, and of each account fewer: what one asks delays no other for long. */
export interface Turnstile {
  /** @returns what lets the next one in; undefined when there was no room in time */
  enter(accountId: string): Promise<(() => void) | undefined>;
}

interface Waiting {
  readonly accountId: string;
  readonly begin: () => void;
}

export interface TurnstileBounds {
  /** Inside at a time, and of one account. */
  readonly readingMax: number;
  readonly readingOfAccountMax: number;
  /** That wait to be let in, and how long at the most. */
  readonly waitingMax: number;
  readonly waitingMs: number;
}

/** Creates a turnstile that nobody has passed yet. */
export function createTurnstile(bounds: TurnstileBounds): Turnstile {
  const inside = new Map<string, number>();
  const line: Waiting[] = [];
  let total = 0;

  const hasRoom = (accountId: string) =>
    total < bounds.readingMax && (inside.get(accountId) ?? 0) < bounds.readingOfAccountMax;
  const letIn = (accountId: string) => {
    total += 1;
    inside.set(accountId, (inside.get(accountId) ?? 0) + 1);
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      total -= 1;
      const left = (inside.get(accountId) ?? 1) - 1;
      if (left === 0) inside.delete(accountId);
      else inside.set(accountId, left);
      const next = line.find((one) => hasRoom(one.accountId));
      next?.begin();
    };
  };

  return {
    enter(accountId) {
      if (hasRoom(accountId)) return Promise.resolve(letIn(accountId));
      if (line.length >= bounds.waitingMax) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const leave = (leaving: (() => void) | undefined) => {
          clearTimeout(timer);
          line.splice(line.indexOf(waiting), 1);
          resolve(leaving);
        };
        const waiting: Waiting = { accountId, begin: () => leave(letIn(accountId)) };
        const timer = setTimeout(() => leave(undefined), bounds.waitingMs);
        line.push(waiting);
      });
    },
  };
}
