/** Refused credentials in memory; beyond that, the oldest one is forgotten. */
const REFUSALS_MAX = 10_000;
const REFUSAL_MS = 500;

/**
 * Remembers refused credentials briefly, against a client that keeps repeating one. A new credential
 * is never among them: its random part could not have been requested before it was made.
 */
export function createRecentRefusals<T>() {
  const refusals = new Map<string, { readonly fault: T; readonly untilMs: number }>();
  return {
    get(handle: string): T | undefined {
      const refusal = refusals.get(handle);
      return refusal !== undefined && performance.now() < refusal.untilMs
        ? refusal.fault
        : undefined;
    },
    put(handle: string, fault: T): void {
      if (refusals.size >= REFUSALS_MAX) refusals.delete(refusals.keys().next().value!);
      refusals.delete(handle);
      refusals.set(handle, { fault, untilMs: performance.now() + REFUSAL_MS });
    },
    clear: () => refusals.clear(),
  };
}
