/** How long a sample counts, at the least: a clock that was set is believed again after twice that. */
const WINDOW_MS = 30_000;

/** The platform's clock, as far as its frames tell it. */
export interface Clock {
  /** A frame said `serverMs` and came at `localMs`. */
  note(serverMs: number, localMs: number): void;
  /** ms by the platform's clock; undefined until a frame told it. */
  now(localMs: number): number | undefined;
}

/**
 * Creates a clock that nobody has told anything. Each frame was under way for a while, so it puts
 * the clock back by that; the one that was the fastest is believed.
 */
export function createClock(): Clock {
  let current = Number.NEGATIVE_INFINITY;
  let before = Number.NEGATIVE_INFINITY;
  let startedMs = 0;
  return {
    note(serverMs, localMs) {
      if (Math.abs(localMs - startedMs) > WINDOW_MS) {
        before = current;
        current = Number.NEGATIVE_INFINITY;
        startedMs = localMs;
      }
      current = Math.max(current, serverMs - localMs);
    },
    now(localMs) {
      const offset = Math.max(current, before);
      return Number.isFinite(offset) ? localMs + offset : undefined;
    },
  };
}
