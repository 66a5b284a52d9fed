import { expect, it } from 'vitest';
import { nowMicros } from '../../lib/clock.ts';
import { checkPill } from '../../schemas/pill.ts';
import { createMarket, LISTINGS, type Signal } from './market.ts';

const NOW = Date.parse('2026-11-20T01:00:00Z');

function signals(seed: number, count: number): Signal[] {
  const market = createMarket(seed);
  return Array.from({ length: count }, () => market.next(NOW));
}

it('one seed is one market, another seed another one', () => {
  expect(signals(7, 500)).toEqual(signals(7, 500));
  expect(signals(7, 500)).not.toEqual(signals(8, 500));
});

it('the clock decides the state alone, never the figures', () => {
  const night = createMarket(7);
  const figures = ({ market_state: _, ...rest }: Signal) => rest;
  const other = Array.from({ length: 500 }, () => night.next(NOW + 12 * 3_600_000));
  expect(other.map(figures)).toEqual(signals(7, 500).map(figures));
});

it('every signal is a valid pill, of every symbol', () => {
  const rules = { confidenceMax: 1, now: nowMicros() };
  const made = signals(1, 5_000);
  const faults = made.flatMap((signal) => checkPill({ id: 'x', timestamp: 1, ...signal }, rules));
  expect(faults).toEqual([]);
  expect(new Set(made.map(({ symbol }) => symbol)).size).toBe(LISTINGS.length);
});

it('spreads revert to their mean, and confidence goes with the spread narrowing next', () => {
  const last = new Map<string, Signal>();
  const narrowed = { high: [0, 0], low: [0, 0] };
  const spreads = new Map<string, number[]>();
  for (const signal of signals(3, 50_000)) {
    const before = last.get(signal.symbol);
    if (before !== undefined) {
      const bucket = before.confidence >= 0.7 ? narrowed.high : narrowed.low;
      bucket[0]! += signal.gross_spread_percent < before.gross_spread_percent ? 1 : 0;
      bucket[1]! += 1;
    }
    last.set(signal.symbol, signal);
    spreads.set(signal.symbol, [
      ...(spreads.get(signal.symbol) ?? []).slice(-3_000),
      signal.gross_spread_percent,
    ]);
  }
  const share = ([hits, all]: number[]) => hits! / all!;
  expect(share(narrowed.high)).toBeGreaterThan(share(narrowed.low) + 0.1);
  for (const { symbol, meanSpread } of LISTINGS) {
    const values = spreads.get(symbol)!.toSorted((a, b) => a - b);
    const median = values[Math.floor(values.length / 2)]!;
    expect(median / meanSpread).toBeGreaterThan(0.7);
    expect(median / meanSpread).toBeLessThan(1.5);
  }
});
