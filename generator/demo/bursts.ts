import type { TradingVenue } from '../../domain/market/calendars/venue-rules.ts';
import type { Random } from './random.ts';

export type Regime = ReturnType<typeof createRegime>;

/** Mean durations; both are exponentially distributed. */
const BURST_MEAN_S = 8;
const CALM_MEAN_S = 100;
/** A burst doubles the rate: all additional signals are of one venue. */
const BURST_FACTOR = 2;
/** Share of time in bursts; it sets the calm rate such that the mean rate is 1. */
const BURST_SHARE = BURST_MEAN_S / (BURST_MEAN_S + CALM_MEAN_S);
const CALM_FACTOR = (1 - BURST_SHARE * BURST_FACTOR) / (1 - BURST_SHARE);
/** Share of a burst's signals that its venue has beyond its ordinary ones. */
const EXTRA_SHARE = (BURST_FACTOR - CALM_FACTOR) / BURST_FACTOR;

/** A calm regime interrupted by bursts, each at one venue (a two-state Markov process). */
export function createRegime(random: Random, venues: readonly TradingVenue[]) {
  let burst: TradingVenue | undefined;
  let changesAtS = random.exponential(CALM_MEAN_S);
  return {
    /** Advances to a time. Times never go back. */
    advanceTo(atS: number): void {
      while (atS >= changesAtS) {
        burst = burst === undefined ? venues[Math.floor(random.next() * venues.length)] : undefined;
        changesAtS += random.exponential(burst === undefined ? CALM_MEAN_S : BURST_MEAN_S);
      }
    },
    /** The venue with a burst; undefined: calm. */
    burstOf: () => burst,
    /** Current rate of signals of all symbols, relative to the mean rate. */
    rateFactor: () => (burst === undefined ? CALM_FACTOR : BURST_FACTOR),
    /** Venue of the next signal: the venue of the burst, or undefined for any. */
    venueOfNext: () => (random.next() < EXTRA_SHARE ? burst : undefined),
  };
}
