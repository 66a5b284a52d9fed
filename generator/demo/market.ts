import type { TradingVenue } from '../../domain/market/calendars/venue-rules.ts';
import type { Pill } from '../../schemas/pill.ts';
import { createRegime, type Regime } from './bursts.ts';
import { createRandom, type Random } from './random.ts';

/** A symbol of the market. */
export interface Listing {
  readonly symbol: string;
  readonly venue: TradingVenue;
  /** Mean to which the spread reverts, in percent of mid. */
  readonly meanSpread: number;
  /** Frequency of its signals, relative to a weight of 1. */
  readonly weight: number;
}

/** The model's part of a pill, and its time in seconds since the start of the market. */
export interface Signal extends Pick<Pill, 'symbol' | 'gross_spread_percent' | 'confidence'> {
  readonly atS: number;
}

export type Market = ReturnType<typeof createMarket>;

interface State {
  readonly listing: Listing;
  /** Logarithm of spread / mean: 0 is the mean, and no spread is ever negative. */
  deviation: number;
  movedAtS: number;
}

/** Time constant: a deviation decays by a factor of e in this time. */
const REVERSION_S = 90;
/** Standard deviation of the deviation in the long run, outside bursts. */
const SPREAD_OF_DEVIATION = 0.25;
/** Factor of a venue's noise in a burst. */
const BURST_NOISE = 2;
/** Mean time between upward jumps (news, a large order) of a symbol; shorter in a burst. */
const JUMP_EVERY_S = 900;
const JUMP_EVERY_S_IN_BURST = 60;
const JUMP_MEAN = 0.6;
/** Horizon of the prediction that `confidence` expresses. */
const HORIZON_S = 60;

/**
 * A market fully determined by its seed, independent of the clock and of the caller. The logarithm of
 * each symbol's spread is an Ornstein-Uhlenbeck process with upward jumps, and venues have bursts of
 * higher activity. Signals arrive as a Poisson process.
 * @param pillsPerS mean rate over calm and bursts
 */
export function createMarket(seed: number, pillsPerS: number, listings: readonly Listing[]) {
  const random = createRandom(seed);
  const states: State[] = listings.map((listing) => {
    return { listing, deviation: random.normal() * SPREAD_OF_DEVIATION, movedAtS: 0 };
  });
  const venues = [...new Set(listings.map(({ venue }) => venue))];
  const regime = createRegime(random, venues);
  const chooserOf = new Map<TradingVenue | undefined, () => State>([
    [undefined, createChooser(random, states)],
  ]);
  for (const venue of venues) {
    const own = states.filter(({ listing }) => listing.venue === venue);
    chooserOf.set(venue, createChooser(random, own));
  }
  let atS = 0;
  return {
    /** The next signal; times never go back. */
    next(): Signal {
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

/** The exact step of an Ornstein-Uhlenbeck process over any time, with its jumps. */
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
 * Probability that the spread is narrower in a minute than now, in the model without jumps: after a
 * time h the deviation x is normal with mean x·k and variance s²(1 − k²), k = exp(−h / reversion), so
 * the probability of a value below x is Φ(x(1 − k) / (s √(1 − k²))).
 */
function narrowsChance(deviation: number): number {
  const kept = Math.exp(-HORIZON_S / REVERSION_S);
  return normalCdf((deviation * (1 - kept)) / (SPREAD_OF_DEVIATION * Math.sqrt(1 - kept * kept)));
}

/** Φ by the logistic curve, to 0.01 (Johnson, Kotz, Balakrishnan 1995, 23.2: factor 1.702). */
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
