import type { Pill } from '../../schemas/pill.ts';
import { createRandom, type Random } from './random.ts';
import { marketStateAt, type VenueName } from './sessions.ts';

/** A symbol of the demo market. Spreads in percent of mid. */
export interface Listing {
  readonly symbol: string;
  readonly venue: VenueName;
  /** What the spread reverts to. */
  readonly meanSpread: number;
}

export const LISTINGS: readonly Listing[] = [
  { symbol: '7203.T', venue: 'tokyo', meanSpread: 0.035 },
  { symbol: '6758.T', venue: 'tokyo', meanSpread: 0.04 },
  { symbol: '0700.HK', venue: 'hongKong', meanSpread: 0.05 },
  { symbol: '9988.HK', venue: 'hongKong', meanSpread: 0.06 },
  { symbol: '600519.SS', venue: 'shanghai', meanSpread: 0.03 },
  { symbol: '005930.KS', venue: 'seoul', meanSpread: 0.14 },
  { symbol: 'D05.SI', venue: 'singapore', meanSpread: 0.03 },
  { symbol: 'BHP.AX', venue: 'sydney', meanSpread: 0.025 },
  { symbol: 'CBA.AX', venue: 'sydney', meanSpread: 0.02 },
  { symbol: 'RELIANCE.NS', venue: 'mumbai', meanSpread: 0.04 },
  { symbol: 'USD/JPY', venue: 'currencies', meanSpread: 0.009 },
  { symbol: 'AUD/USD', venue: 'currencies', meanSpread: 0.013 },
];

/** A signal without a name and a time: the model's part of a pill. */
export type Signal = Omit<Pill, 'id' | 'timestamp'>;

/** A market that a seed decides wholly; each call moves one symbol by one step. */
export interface Market {
  /** Next signal; the clock decides `market_state` alone, never the figures. */
  next(epochMs: number): Signal;
}

interface State {
  readonly listing: Listing;
  /** Logarithm of spread / mean: 0 is the mean, and no spread is ever negative. */
  deviation: number;
}

/** Part of the deviation that each step takes back. */
const REVERSION = 0.08;
const STEP_NOISE = 0.07;
/** A jump in so many steps: news, a large order. */
const JUMP_CHANCE = 0.01;
const JUMP_SIZE = 0.9;

/**
 * A mean-reverting market: the logarithm of each symbol's spread is an Ornstein-Uhlenbeck process
 * in discrete steps, with rare upward jumps.
 */
export function createMarket(seed: number, listings: readonly Listing[] = LISTINGS): Market {
  const random = createRandom(seed);
  const states: State[] = listings.map((listing) => ({
    listing,
    deviation: random.normal() * 0.2,
  }));
  return {
    next(epochMs) {
      const state = states[Math.floor(random.next() * states.length)]!;
      const { symbol, venue, meanSpread } = state.listing;
      move(state, random);
      return {
        symbol,
        gross_spread_percent: rounded(meanSpread * Math.exp(state.deviation), 6),
        market_state: marketStateAt(venue, epochMs),
        confidence: confidenceOf(state.deviation),
      };
    },
  };
}

function move(state: State, random: Random): void {
  const jump = random.next() < JUMP_CHANCE ? JUMP_SIZE : 0;
  state.deviation += -REVERSION * state.deviation + STEP_NOISE * random.normal() + jump;
}

/**
 * Confidence that the spread narrows next, 0 … 1: the wider it stands above its mean, the more
 * surely reversion pulls it down. Logistic in the deviation, 0.5 at the mean.
 */
function confidenceOf(deviation: number): number {
  return rounded(1 / (1 + Math.exp(-2.5 * deviation)), 4);
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
