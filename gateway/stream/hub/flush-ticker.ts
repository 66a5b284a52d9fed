import { createRateMeter } from '../../../lib/rate/window-counter.ts';

/**
 * Ticks are spaced only under load, because the cost is one syscall per frame. Below 50,000
 * deliveries/s each turn of the event loop is a tick; above, a pill waits at most 5 ms, and at most
 * 10 ms above 200,000 deliveries/s.
 */
const PACES = [
  { deliveriesPerS: 200_000, spacingMs: 10 },
  { deliveriesPerS: 50_000, spacingMs: 5 },
] as const;

const RATE_WINDOW_MS = 250;

export interface TickerOptions {
  /** A monotonic clock, in ms. */
  readonly nowMs: () => number;
  /** Runs the next tick after `delayMs`; 0 is the next turn of the event loop. */
  readonly schedule: (tick: () => void, delayMs: number) => void;
}

/** Creates the ticker that calls `tick` after each request, later under higher load. */
export function createFlushTicker({ nowMs, schedule }: TickerOptions, tick: () => void) {
  const rate = createRateMeter(RATE_WINDOW_MS, nowMs());
  let requested = false;
  let lastTickMs = Number.NEGATIVE_INFINITY;
  /** The current distance between ticks in ms; 0 if they are not spaced. */
  const spacingMs = () => {
    const perS = rate.perS(nowMs());
    return PACES.find((pace) => perS >= pace.deliveriesPerS)?.spacingMs ?? 0;
  };
  return {
    spacingMs,
    /** Requests a tick; requests before that tick are merged. */
    request() {
      if (requested) return;
      requested = true;
      // One ms less, because a timer may fire one ms late.
      const wait = Math.max(0, Math.floor(lastTickMs + spacingMs() - 1 - nowMs()));
      schedule(() => {
        requested = false;
        tick();
      }, wait);
    },
    /** Records a tick, requested or not, and the pills that it delivered. */
    ticked(deliveries: number) {
      lastTickMs = nowMs();
      rate.add(lastTickMs, deliveries);
    },
  };
}
