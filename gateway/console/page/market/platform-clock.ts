/** How long a sample counts at least; a change of the platform's clock shows within twice this. */
const WINDOW_MS = 30_000;

/**
 * Creates an estimate of the platform's clock from the times in its frames. Each time is behind by
 * the frame's transit time, so the fastest frame is the best estimate.
 */
export function createClock() {
  let current = Number.NEGATIVE_INFINITY;
  let before = Number.NEGATIVE_INFINITY;
  let startedMs = 0;
  return {
    /** Records that a frame with the time `serverMs` came at `localMs`. */
    observe(serverMs: number, localMs: number): void {
      if (Math.abs(localMs - startedMs) > WINDOW_MS) {
        before = current;
        current = Number.NEGATIVE_INFINITY;
        startedMs = localMs;
      }
      current = Math.max(current, serverMs - localMs);
    },
    /** ms by the platform's clock; undefined before the first frame with a time. */
    now(localMs: number): number | undefined {
      const offset = Math.max(current, before);
      return Number.isFinite(offset) ? localMs + offset : undefined;
    },
  };
}

/** µs since 1970 of `YYYY-MM-DDTHH:MM:SS.ffffffZ`; `Date.parse` keeps only ms. */
export function microsOf(iso: string): number {
  return Date.parse(iso) * 1_000 + Number(iso.slice(23, 26));
}

/** `14:03:07` in this machine's time zone. @param ms since 1970 */
export function localTime(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hourCycle: 'h23' });
}
