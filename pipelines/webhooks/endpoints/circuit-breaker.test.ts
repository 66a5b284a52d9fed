import { describe, expect, test } from 'vitest';
import { createCircuitBreaker } from './circuit-breaker.ts';

const SECOND = 1_000;

describe('a circuit breaker', () => {
  test('stays closed below five failures in a row', () => {
    const breaker = createCircuitBreaker();
    for (let n = 0; n < 4; n += 1) expect(breaker.failed(n)).toBe(false);
    breaker.succeeded();
    for (let n = 0; n < 4; n += 1) expect(breaker.failed(n)).toBe(false);
    expect(breaker.restingUntilMs()).toBe(0);
  });

  test('rests 10 s at the fifth, then twice as long after each probe that fails, at most 300 s', () => {
    const breaker = createCircuitBreaker();
    let now = 1;
    for (let n = 0; n < 4; n += 1) breaker.failed(now);
    const rests: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      expect(breaker.failed(now)).toBe(true);
      rests.push((breaker.restingUntilMs() - now) / SECOND);
      now = breaker.restingUntilMs();
    }
    expect(rests).toEqual([10, 20, 40, 80, 160, 300, 300, 300]);
  });

  test('does not count attempts that were in flight when it opened', () => {
    const breaker = createCircuitBreaker();
    for (let n = 0; n < 5; n += 1) breaker.failed(1);
    for (let n = 0; n < 20; n += 1) expect(breaker.failed(2)).toBe(false);
    expect(breaker.restingUntilMs()).toBe(1 + 10 * SECOND);
  });

  test('rests as Retry-After asks, from the first failure on; a success ends it', () => {
    const breaker = createCircuitBreaker();
    expect(breaker.failed(1, 120)).toBe(true);
    expect(breaker.restingUntilMs()).toBe(1 + 120 * SECOND);
    breaker.succeeded();
    expect(breaker.restingUntilMs()).toBe(0);
  });
});
