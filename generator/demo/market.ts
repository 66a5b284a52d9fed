import type { Place } from '../../lib/calendar/venue-rules.ts';
import type { Pill } from '../../schemas/pill.ts';
import { createRegime, type Regime } from './bursts.ts';
import { createRandom, type Random } from './random.ts';

/** A symbol of the market. */
export interface Listing {
  readonly symbol: string;
  readonly venue: Place;
  /** What the spread reverts to, in percent of mid. */
  readonly meanSpread: number;
  /** How often it is heard of, against a weight of 1. */
  readonly weight: number;
}

/** The model's part of a pill, and when it happens: seconds since the market began. */
export interface Signal extends Pick<Pill, 'symbol' | 'gross_spread_percent' | 'confidence'> {
  readonly atS: number;
}

/** A market that its seed decides wholly: neither the clock nor who asks has a part in it. */
export interface Market {
  /** The next signal; times never go back. */
  next(): Signal;
}

interface State {
  readonly listing: Listing;
  /** Logarithm of spread / mean: 0 is the mean, and no spread is ever negative. */
  deviation: number;
  movedAtS: number;
}

/** What is left of a deviation after a while falls by 1/e in this time. */
const REVERSION_S = 90;
/** Standard deviation of the deviation in the long run, outside bursts. */
const SPREAD_OF_DEVIATION = 0.25;
/** In a burst the noise of its venue is so many times as large. */
const BURST_NOISE = 2;
/** News, a large order: a jump upwards, so seldom in each symbol; in a burst of its venue sooner. */
const JUMP_EVERY_S = 900;
const JUMP_EVERY_S_IN_BURST = 60;
const JUMP_MEAN = 0.6;
/** What `confidence` speaks of. */
const HORIZON_S = 60;

/**
 * A mean-reverting market: the logarithm of each symbol's spread is an Ornstein-Uhlenbeck process
 * with upward jumps, and venues have bursts in which more happens. Signals arrive as a Poisson
 * process. @param pillsPerS mean rate over calm and bursts
 */
export function createMarket(
  seed: number,
  pillsPerS: number,
  listings: readonly Listing[],
): Market {
  const random = createRandom(seed);
  const states: State[] = listings.map((listing) => ({
    ...{ listing, deviation: random.normal() * SPREAD_OF_DEVIATION, movedAtS: 0 },
  }));
  const regime = createRegime(random, [...new Set(listings.map(({ venue }) => venue))]);
  const chooserOf = new Map<Place | undefined, () => State>([
    [undefined, createChooser(random, states)],
  ]);
  for (const venue of new Set(listings.map((listing) => listing.venue))) {
    const own = states.filter(({ listing }) => listing.venue === venue);
    chooserOf.set(venue, createChooser(random, own));
  }
  let atS = 0;
  return {
    next() {
      atS += random.exponential(1 / (pillsPerS * regime.rateFactor()));
      regime.advanceTo(atS);
      const state = chooserOf.get(regime.venueOfNext())!();
      move(state, atS, regime, random);
      const { symbol, meanSpread } = state.listing;
      return {
        atS,
        symbol,
        gross_spread_percent: rounded(meanSpread * Math.exp(state.deviation), 6),
        confidence: rounded(100 * narrowsChance(state.deviation), 1),
      };
    },
  };
}

/** The exact step of an Ornstein-Uhlenbeck process over any time, and the jumps in it. */
function move(state: State, atS: number, { burstOf }: Regime, random: Random): void {
  const elapsedS = atS - state.movedAtS;
  state.movedAtS = atS;
  const isBurst = burstOf() === state.listing.venue;
  const kept = Math.exp(-elapsedS / REVERSION_S);
  const noise = SPREAD_OF_DEVIATION * (isBurst ? BURST_NOISE : 1) * Math.sqrt(1 - kept * kept);
  const jumpEveryS = isBurst ? JUMP_EVERY_S_IN_BURST : JUMP_EVERY_S;
  const jumps = random.next() < 1 - Math.exp(-elapsedS / jumpEveryS);
  state.deviation = state.deviation * kept + noise * random.normal();
  if (jumps) state.deviation += random.exponential(JUMP_MEAN);
}

/**
 * Chance that the spread is narrower in a minute than now, of the model without jumps: after a time
 * h the deviation x is normal with mean x·k and variance s²(1 − k²), k = exp(−h / reversion), so the
 * chance of less than x is Φ(x(1 − k) / (s √(1 − k²))).
 */
function narrowsChance(deviation: number): number {
  const kept = Math.exp(-HORIZON_S / REVERSION_S);
  return normalCdf((deviation * (1 - kept)) / (SPREAD_OF_DEVIATION * Math.sqrt(1 - kept * kept)));
}

/** Φ by the logistic curve, right to 0.01 (Johnson, Kotz, Balakrishnan 1995, 23.2: factor 1.702). */
function normalCdf(z: number): number {
  return 1 / (1 + Math.exp(-1.702 * z));
}

function createChooser(random: Random, states: readonly State[]): () => State {
  let total = 0;
  const ends = states.map(({ listing }) => {
    total += listing.weight;
    return total;
  });
  return () => {
    const point = random.next() * total;
    return states[ends.findIndex((end) => point < end)]!;
  };
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
