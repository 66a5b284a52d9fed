import { expect, test } from 'vitest';
import {
  ATTEMPTS_MAX,
  DISABLE_AFTER_S,
  RETRY_WAITS_S,
  retryWaitS,
  testWaitS,
} from './retry-schedule.ts';

test('waits follow the standard, ±10 %; after the last attempt there is no wait', () => {
  for (const [at, wait] of RETRY_WAITS_S.entries()) {
    expect(retryWaitS(at + 1, undefined, () => 0)).toBeCloseTo(wait * 0.9);
    expect(retryWaitS(at + 1, undefined, () => 1)).toBeCloseTo(wait * 1.1);
  }
  expect(retryWaitS(ATTEMPTS_MAX, undefined)).toBeUndefined();
  expect(retryWaitS(ATTEMPTS_MAX, 60)).toBeUndefined();
});

test('a longer Retry-After takes precedence, a shorter one does not', () => {
  expect(retryWaitS(1, 120, () => 0.5)).toBe(120);
  expect(retryWaitS(3, 120, () => 0.5)).toBe(1_800);
});

test('tests are retried within a minute, ten times', () => {
  const waits = Array.from({ length: ATTEMPTS_MAX }, (_, n) => testWaitS(n + 1, undefined));
  expect(waits).toEqual([5, 10, 15, 20, 25, 30, 35, 40, 45, undefined]);
  expect(testWaitS(1, 60)).toBe(60);
});

test('an endpoint is not disabled before all attempts of a message were made', () => {
  const all = RETRY_WAITS_S.reduce((sum, wait) => sum + wait, 0);
  expect(DISABLE_AFTER_S).toBeGreaterThanOrEqual(all);
});
