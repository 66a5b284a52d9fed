/**
 * How eagerly a consumer fetches records. A fetch costs the broker and the client about the same
 * whether full or nearly empty, and at 1,000 pills/s the broker uses more CPU than any other process.
 */
export interface Pace {
  /** The broker answers as soon as this many bytes are available … */
  readonly minBytes: number;
  /** … and after this time in any case. */
  readonly waitMs: number;
  /**
   * Pause between the records of one fetch and the next fetch; the first record after an idle period
   * never waits. The concurrency must cover all partitions, so that no batch waits behind another's
   * pause. A function is called after each fetch.
   */
  readonly pauseMs: number | (() => number);
}

/**
 * Every record as it arrives. A shorter wait gives no lower latency, only idle CPU: six idle
 * consumers use 0.83 core at 5 ms and 0.15 at 100 ms, with the same median of 2 ms (measured).
 */
export const EAGER: Pace = { minBytes: 1, waitMs: 500, pauseMs: 0 };
/** At once after an idle period, then at most 500 times a second, so that records share fetches. */
export const QUICK = { minBytes: 1, waitMs: 500, pauseMs: 2 } as const;
/**
 * At once after an idle period, then at most 40 times a second: for views that are polled, and for
 * webhooks, whose bound is 100 ms. Four such readers at 200 fetches a second took 15 % of the CPU of
 * the whole stack at 1,000 pills/s (measured).
 */
export const STEADY: Pace = { minBytes: 1, waitMs: 500, pauseMs: 25 };
/** Twice a second, or when 256 KiB are available: for sinks that write in batches anyway. */
export const BULK: Pace = { minBytes: 256 * 1024, waitMs: 500, pauseMs: 0 };

/** Holds all batches of one fetch until its pause is over; only then is the next fetch sent. */
export function createPacer({ pauseMs }: Pace) {
  const lengthMs = typeof pauseMs === 'function' ? pauseMs : () => pauseMs;
  let until = 0;
  return {
    pause(): Promise<void> {
      const now = performance.now();
      if (now >= until) until = now + lengthMs();
      return new Promise((resolve) => setTimeout(resolve, until - now));
    },
  };
}
