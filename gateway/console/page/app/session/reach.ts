/** Whether the platform answered the last request, for all parts that show it. */
export function createReach() {
  let isReached = true;
  const listeners = new Set<(isReached: boolean) => void>();
  return {
    get isReached() {
      return isReached;
    },
    /** @param next an answer of any kind came, or none */
    set(next: boolean): void {
      if (next === isReached) return;
      isReached = next;
      for (const listener of listeners) listener(next);
    },
    /** @returns ends it */
    follow(listener: (isReached: boolean) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export type Reach = ReturnType<typeof createReach>;
