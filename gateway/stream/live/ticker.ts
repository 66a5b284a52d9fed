import { createRate } from '../door/rate.ts';

/**
 * Ticks are spaced only when there is much to send: a syscall a frame is what costs. Below 50,000
 * deliveries a second each turn of the event loop is a tick; above, a pill waits 5 ms at most, and
 * 10 ms above 200,000.
 */
const PACES = [
  { deliveriesPerS: 200_000, spacingMs: 10 },
  { deliveriesPerS: 50_000, spacingMs: 5 },
] as const;

export interface TickerOptions {
  /** Monotonic, in ms. */
  readonly nowMs: () => number;
  /** Runs the next tick after `delayMs`; 0 is the next turn of the event loop. */
  readonly schedule: (tick: () => void, delayMs: number) => void;
}

/** When the hub's ticks happen. */
export interface Ticker {
  /** Asks for a tick; many requests before it are one. */
  request(): void;
  /** A tick has just sent so many pills, asked for or not: the next ones keep their distance. */
  ticked(deliveries: number): void;
  /** How far apart ticks are now, in ms; 0 when they are not spaced. */
  spacingMs(): number;
}

/** Creates the ticker that calls `tick` after each request, the later the more is being sent. */
export function createTicker({ nowMs, schedule }: TickerOptions, tick: () => void): Ticker {
  const rate = createRate(nowMs);
  let requested = false;
  let lastTickMs = Number.NEGATIVE_INFINITY;
  const spacingMs = () => {
    const perS = rate.perS();
    return PACES.find((pace) => perS >= pace.deliveriesPerS)?.spacingMs ?? 0;
  };
  return {
    spacingMs,
    request() {
      if (requested) return;
      requested = true;
      // A whole ms less, since a timer fires up to one late.
      const wait = Math.max(0, Math.floor(lastTickMs + spacingMs() - 1 - nowMs()));
      schedule(() => {
        requested = false;
        tick();
      }, wait);
    },
    ticked(deliveries) {
      lastTickMs = nowMs();
      rate.add(deliveries);
    },
  };
}
