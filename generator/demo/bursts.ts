import type { Place } from '../../lib/calendar/venue-rules.ts';
import type { Random } from './random.ts';

/** Whether the market is calm, or a venue has a burst. */
export interface Regime {
  /** Moves on to a time. Times never go back. */
  advanceTo(atS: number): void;
  /** The venue that has a burst now; undefined: calm. */
  burstOf(): Place | undefined;
  /** Rate of signals now, of all symbols, against the mean rate. */
  rateFactor(): number;
  /** Whose signal is next: the burst's venue, or (undefined) any. */
  venueOfNext(): Place | undefined;
}

/** Both exponentially distributed. */
const BURST_MEAN_S = 8;
const CALM_MEAN_S = 100;
/** In a burst twice as much happens: everything that is more is of one venue. */
const BURST_FACTOR = 2;
/** So that the mean rate is 1. */
const BURST_SHARE = BURST_MEAN_S / (BURST_MEAN_S + CALM_MEAN_S);
const CALM_FACTOR = (1 - BURST_SHARE * BURST_FACTOR) / (1 - BURST_SHARE);
/** Part of a burst's signals that are of its venue beyond its ordinary ones. */
const EXTRA_SHARE = (BURST_FACTOR - CALM_FACTOR) / BURST_FACTOR;

/** A calm that bursts interrupt, each of one venue (a two-state Markov process). */
export function createRegime(random: Random, venues: readonly Place[]): Regime {
  let burst: Place | undefined;
  let changesAtS = random.exponential(CALM_MEAN_S);
  return {
    advanceTo(atS) {
      while (atS >= changesAtS) {
        burst = burst === undefined ? venues[Math.floor(random.next() * venues.length)] : undefined;
        changesAtS += random.exponential(burst === undefined ? CALM_MEAN_S : BURST_MEAN_S);
      }
    },
    burstOf: () => burst,
    rateFactor: () => (burst === undefined ? CALM_FACTOR : BURST_FACTOR),
    venueOfNext: () => (random.next() < EXTRA_SHARE ? burst : undefined),
  };
}
