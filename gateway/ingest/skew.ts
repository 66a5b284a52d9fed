import type { Micros } from '../../schemas/timestamp.ts';

/** How long the smallest difference counts; a corrected clock takes effect after two windows. */
const WINDOW_MICROS = 30_000_000;
/** Smaller differences are transit time to the log and back; consumers trust this clock to 5 s. */
const NOTABLE_MICROS = 1_000_000;
/** A difference includes the transit time to the log, so its true value may be this much lower. */
const MARGIN_MICROS = 100_000;

export type Skew = ReturnType<typeof createSkew>;

/**
 * Creates the estimate of how far the broker's clock is ahead of this process's clock: the least
 * `appendedAt - receivedAt`, which includes the least waiting.
 */
export function createSkew() {
  let current = Number.POSITIVE_INFINITY;
  let previous = Number.POSITIVE_INFINITY;
  let currentSince = 0;
  return {
    /** Observes one acknowledged record: its append time, and this clock at its arrival. */
    observe(appendedAt: Micros, receivedAt: Micros): void {
      if (appendedAt < 0) return;
      const difference = appendedAt - receivedAt;
      // Setting this clock back begins a new window as well.
      if (Math.abs(receivedAt - currentSince) >= WINDOW_MICROS) {
        previous = current;
        current = difference;
        currentSince = receivedAt;
      } else if (difference < current) current = difference;
    },
    /** The estimate; 0 before the first record. */
    estimate(): Micros {
      const least = Math.min(current, previous);
      return Number.isFinite(least) ? least : 0;
    },
    /**
     * The clock that a pill's timestamp is checked against. A consumer that distrusts the receive
     * time uses the append time instead, so an acknowledged pill must be valid by both.
     */
    checkedClock(now: Micros): Micros {
      const skew = Math.min(current, previous);
      return skew < -NOTABLE_MICROS ? now + skew - MARGIN_MICROS : now;
    },
  };
}
