import type { Micros } from '../../schemas/timestamp.ts';

/** How long the smallest difference counts; a clock that was set right is believed after two. */
const WINDOW_MICROS = 30_000_000;
/** Differences below this are the way to the log and back. Consumers trust us within 5 s. */
const NOTABLE_MICROS = 1_000_000;
/** The way to the log is in every difference: the truth may be this much lower. */
const MARGIN_MICROS = 100_000;

/** How far the broker's clock is ahead of ours. */
export interface Skew {
  /** Notes one acknowledged record: its append time, and our clock at its arrival before. */
  observe(appendedAt: Micros, receivedAt: Micros): void;
  /** The estimate; 0 before the first record. */
  estimate(): Micros;
  /**
   * The clock that a pill's timestamp is checked against. A consumer takes the append time where
   * it does not believe ours: what is acknowledged must hold by both.
   */
  checkedClock(now: Micros): Micros;
}

/** Creates the estimate: the least of `appendedAt - receivedAt`, for that had the least waiting. */
export function createSkew(): Skew {
  let current = Number.POSITIVE_INFINITY;
  let previous = Number.POSITIVE_INFINITY;
  let currentSince = 0;
  const estimate = () => {
    const least = Math.min(current, previous);
    return Number.isFinite(least) ? least : 0;
  };
  return {
    observe(appendedAt, receivedAt) {
      if (appendedAt < 0) return;
      const difference = appendedAt - receivedAt;
      // A clock of ours that was set back begins a new window as well.
      if (Math.abs(receivedAt - currentSince) >= WINDOW_MICROS) {
        previous = current;
        current = difference;
        currentSince = receivedAt;
      } else if (difference < current) current = difference;
    },
    estimate,
    checkedClock(now) {
      const skew = Math.min(current, previous);
      return skew < -NOTABLE_MICROS ? now + skew - MARGIN_MICROS : now;
    },
  };
}
