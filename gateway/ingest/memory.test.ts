import { describe, expect, test } from 'vitest';
import { createIdentities, isInFlight, whenSettled } from './identities.ts';
import { createSkew } from './skew.ts';
import { createSymbols } from './symbols.ts';

const pill = {
  id: 'p',
  symbol: '7203.T',
  timestamp: 1,
  gross_spread_percent: 1,
  market_state: 'open',
  confidence: 1,
};

describe('identities', () => {
  test('at least the last half is remembered, and never more than the bound', () => {
    const identities = createIdentities(100);
    for (let i = 0; i < 1_000; i += 1) {
      identities.acknowledge(identities.claim(`i${i}`, pill, 2), i);
      expect(identities.size()).toBeLessThanOrEqual(100);
      if (i >= 50) expect(identities.find(`i${i - 49}`)?.offset).toBe(i - 49);
    }
    expect(identities.find('i0')).toBeUndefined();
  });

  test('an acknowledged pill is found with its content and position', () => {
    const identities = createIdentities(100);
    const claimed = identities.claim('a', pill, 3);
    expect(isInFlight(identities.find('a')!)).toBe(true);
    identities.acknowledge(claimed, 7);
    const { id: _, symbol: __, ...content } = pill;
    expect(identities.find('a')).toEqual({ pill: content, partition: 3, offset: 7 });
    expect(isInFlight(identities.find('a')!)).toBe(false);
  });

  test('every waiter is called once, with whether the pill was acknowledged', async () => {
    const identities = createIdentities(100);
    const stored = identities.claim('a', pill, 0);
    const waits = Promise.all([whenSettled(stored), whenSettled(stored)]);
    identities.acknowledge(stored, 7);
    expect(await waits).toEqual([true, true]);
    const failed = identities.claim('b', pill, 0);
    const wait = whenSettled(failed);
    identities.release(failed);
    expect(await wait).toBe(false);
    expect(identities.find('b')).toBeUndefined();
  });

  test('a failed pill does not remove a later one with its identity', () => {
    const identities = createIdentities(100);
    const first = identities.claim('a', pill, 0);
    identities.release(first);
    const second = identities.claim('a', pill, 0);
    identities.release(first);
    expect(identities.find('a')).toBe(second);
  });
});

describe('symbols', () => {
  const open = (known: { symbol: string; partition: number }[] = []) => createSymbols(4, 2, known);

  test('a symbol counts from its first pill in flight, and permanently once acknowledged', () => {
    const symbols = open();
    expect(['A', 'B'].map((s) => symbols.admit(s, 0))).toEqual([true, true]);
    expect(['C', 'D'].map((s) => symbols.admit(s, 1))).toEqual([true, true]);
    expect(symbols.admit('E', 1)).toBe(false);
    expect(symbols.admit('A', 0)).toBe(true);
    symbols.release('A', 0);
    expect(symbols.admit('E', 1)).toBe(false);
    symbols.release('A', 0);
    expect(symbols.admit('E', 1)).toBe(true);
    for (const s of ['B', 'C', 'D', 'E']) symbols.confirm(s);
    symbols.release('B', 0);
    expect(symbols.size()).toBe(4);
    expect(symbols.admit('B', 0)).toBe(true);
  });

  test('a partition takes no more symbols than its consumer', () => {
    // ceil(4 / 2 × 1.25) = 3
    const symbols = open(['A', 'B', 'C'].map((symbol) => ({ symbol, partition: 0 })));
    expect(symbols.admit('D', 0)).toBe(false);
    expect(symbols.admit('D', 1)).toBe(true);
  });
});

describe('skew', () => {
  test('waiting in a queue is not mistaken for a fast broker clock', () => {
    const skew = createSkew();
    for (const wait of [900_000, 2_000, 40_000]) skew.observe(1_000_000 + wait, 1_000_000);
    expect(skew.estimate()).toBe(2_000);
    expect(skew.checkedClock(5)).toBe(5);
  });

  test('a broker clock behind this process lowers the clock that checks timestamps', () => {
    const skew = createSkew();
    skew.observe(100e6 - 8e6 + 1_000, 100e6);
    expect(skew.checkedClock(200e6)).toBeLessThanOrEqual(192e6);
    expect(skew.checkedClock(200e6)).toBeGreaterThan(191e6);
  });

  test('a corrected clock takes effect after two windows', () => {
    const skew = createSkew();
    skew.observe(92e6, 100e6);
    for (let at = 101e6; at < 200e6; at += 1e6) skew.observe(at + 1_000, at);
    expect(skew.estimate()).toBe(1_000);
    skew.observe(-1, 300e6);
    expect(skew.estimate()).toBe(1_000);
  });
});
