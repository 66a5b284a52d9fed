import { expect, test } from 'vitest';
import { createRateWindow, createTokens } from './rate.ts';

test('a rate is what came within the last second', () => {
  const rate = createRateWindow();
  for (let ms = 0; ms < 3_000; ms += 10) rate.count(5_000 + ms);
  expect(rate.perS(8_000 - 10)).toBe(100);
  expect(rate.perS(8_450)).toBeGreaterThan(40);
  expect(rate.perS(8_450)).toBeLessThan(60);
  expect(rate.perS(9_100)).toBe(0);
  expect(rate.perS(99_999_999)).toBe(0);
});

test('tokens: what comes in a second at once, then one by one; less than one a second too', () => {
  const tokens = createTokens();
  for (let n = 0; n < 10; n += 1) {
    expect(tokens.waitMs(10, 1_000)).toBe(0);
    tokens.take(10, 1_000);
  }
  expect(tokens.waitMs(10, 1_000)).toBeCloseTo(100);
  expect(tokens.waitMs(10, 1_100)).toBe(0);
  const few = createTokens();
  few.take(0.5, 1_000);
  expect(few.waitMs(0.5, 1_000)).toBeCloseTo(2_000);
  expect(few.waitMs(0.5, 3_000)).toBe(0);
});
