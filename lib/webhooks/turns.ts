/**
 * Makes those of one account wait here for each other: as they wait for the lock of the account each
 * would hold a connection, and a customer in a hurry would leave none to others.
 */
export function createTurns() {
  const lastOf = new Map<string, Promise<unknown>>();
  return async <T>(accountId: string, work: () => Promise<T>): Promise<T> => {
    const before = lastOf.get(accountId) ?? Promise.resolve();
    const mine = before.then(work, work);
    lastOf.set(accountId, mine);
    try {
      return await mine;
    } finally {
      if (lastOf.get(accountId) === mine) lastOf.delete(accountId);
    }
  };
}
