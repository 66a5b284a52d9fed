import { expect, it } from 'vitest';
import { createVenueOf, NO_RULES } from '../../domain/market/calendars/venue-rules.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import { checkPill } from '../../schemas/pill.ts';
import { placedListings } from './listings.ts';
import { createMarket, type Signal } from './market.ts';

const LISTINGS = placedListings(createVenueOf(NO_RULES));
const PILLS_PER_S = 50;

function signals(seed: number, count: number): Signal[] {
  const market = createMarket(seed, PILLS_PER_S, LISTINGS);
  return Array.from({ length: count }, () => market.next());
}

function bySymbol(all: readonly Signal[]): Map<string, Signal[]> {
  const found = new Map<string, Signal[]>(LISTINGS.map(({ symbol }) => [symbol, []]));
  for (const signal of all) found.get(signal.symbol)!.push(signal);
  return found;
}

const hour = signals(3, 3_600 * PILLS_PER_S);

it('equal seeds give equal markets, and another seed gives another market', () => {
  expect(signals(7, 500)).toEqual(signals(7, 500));
  expect(signals(7, 500)).not.toEqual(signals(8, 500));
});

it('some fifty symbols, each of a venue with a calendar', () => {
  expect(LISTINGS.length).toBeGreaterThanOrEqual(48);
  expect(new Set(LISTINGS.map(({ symbol }) => symbol)).size).toBe(LISTINGS.length);
  expect(new Set(LISTINGS.map(({ venue }) => venue))).toEqual(
    new Set(['XTKS', 'XHKG', 'XSHG', 'XKRX', 'XSES', 'XASX', 'XNSE', 'FX']),
  );
});

it('every signal makes a valid pill, of every symbol', () => {
  const rules = { confidenceMax: 100, now: nowMicros() };
  const faults = hour.flatMap(({ atS: _, ...signal }) =>
    checkPill({ id: 'x', timestamp: 1, market_state: 'open', ...signal }, rules),
  );
  expect(faults).toEqual([]);
  expect(new Set(hour.map(({ symbol }) => symbol)).size).toBe(LISTINGS.length);
});

it('signals come in order, at the mean rate, with bursts of one venue', () => {
  expect(hour.every(({ atS }, n) => n === 0 || atS >= hour[n - 1]!.atS)).toBe(true);
  expect(hour.length / hour.at(-1)!.atS).toBeGreaterThan(0.95 * PILLS_PER_S);
  expect(hour.length / hour.at(-1)!.atS).toBeLessThan(1.05 * PILLS_PER_S);
  const perS = new Map<number, Map<string, number>>();
  const venueOf = new Map(LISTINGS.map(({ symbol, venue }) => [symbol, venue]));
  for (const { atS, symbol } of hour) {
    const second = Math.floor(atS / 4);
    const counts = perS.get(second) ?? new Map<string, number>();
    counts.set(venueOf.get(symbol)!, (counts.get(venueOf.get(symbol)!) ?? 0) + 1);
    perS.set(second, counts);
  }
  const sum = (counts: Map<string, number>) => [...counts.values()].reduce((a, b) => a + b, 0);
  const busiest = [...perS.values()].toSorted((a, b) => sum(b) - sum(a))[0]!;
  expect(sum(busiest) / 4).toBeGreaterThan(1.7 * PILLS_PER_S);
  expect(Math.max(...busiest.values()) / sum(busiest)).toBeGreaterThan(0.5);
});

it('spreads stay around their mean, and jump at times', () => {
  let jumps = 0;
  for (const [symbol, own] of bySymbol(hour)) {
    const { meanSpread } = LISTINGS.find((listing) => listing.symbol === symbol)!;
    const spreads = own.map((signal) => signal.gross_spread_percent / meanSpread);
    const median = spreads.toSorted((a, b) => a - b)[Math.floor(spreads.length / 2)]!;
    expect(median, symbol).toBeGreaterThan(0.7);
    expect(median, symbol).toBeLessThan(1.5);
    jumps += spreads.filter((spread, n) => n > 0 && spread > 1.6 * spreads[n - 1]!).length;
  }
  expect(jumps).toBeGreaterThan(50);
});

it('confidence is how often the spread is narrower a minute later', () => {
  const buckets = Array.from({ length: 5 }, () => ({ narrowed: 0, all: 0, predicted: 0 }));
  for (const own of bySymbol(hour).values()) {
    let later = 0;
    for (const signal of own) {
      while (later < own.length && own[later]!.atS < signal.atS + 60) later += 1;
      const settled = own[later];
      if (settled === undefined) break;
      const bucket = buckets[Math.min(4, Math.floor(signal.confidence / 20))]!;
      bucket.all += 1;
      bucket.predicted += signal.confidence / 100;
      if (settled.gross_spread_percent < signal.gross_spread_percent) bucket.narrowed += 1;
    }
  }
  for (const { narrowed, all, predicted } of buckets) {
    expect(all).toBeGreaterThan(1_000);
    expect(Math.abs(narrowed / all - predicted / all)).toBeLessThan(0.1);
  }
});
