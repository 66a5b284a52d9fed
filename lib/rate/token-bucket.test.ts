import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fullBucket, takeToken, tokensAt, tryTakeToken, waitForTokenMs } from './token-bucket.ts';

test('a full bucket gives its burst at once, then one token after another', () => {
  const bucket = fullBucket(0);
  const rate = { perS: 10, burst: 10 };
  for (let n = 0; n < 10; n += 1) {
    expect(waitForTokenMs(bucket, rate, 1_000)).toBe(0);
    expect(tryTakeToken(bucket, rate, 1_000)).toBe(true);
  }
  expect(tryTakeToken(bucket, rate, 1_000)).toBe(false);
  expect(waitForTokenMs(bucket, rate, 1_000)).toBeCloseTo(100);
  expect(waitForTokenMs(bucket, rate, 1_100)).toBe(0);
});

test('less than one token a second works too', () => {
  const bucket = fullBucket(0);
  const rate = { perS: 0.5, burst: 1 };
  takeToken(bucket, rate, 1_000);
  expect(waitForTokenMs(bucket, rate, 1_000)).toBeCloseTo(2_000);
  expect(waitForTokenMs(bucket, rate, 3_000)).toBe(0);
});

test('a token taken from an empty bucket is a debt that delays the next one', () => {
  const bucket = fullBucket(0);
  const rate = { perS: 1, burst: 1 };
  for (let n = 0; n < 3; n += 1) takeToken(bucket, rate, 0);
  expect(tokensAt(bucket, rate, 0)).toBe(-2);
  expect(waitForTokenMs(bucket, rate, 0)).toBe(3_000);
  expect(tryTakeToken(bucket, rate, 2_999)).toBe(false);
  expect(tryTakeToken(bucket, rate, 3_000)).toBe(true);
});

test('a smaller burst limits the remaining tokens; a larger one fills up over time', () => {
  const bucket = fullBucket(0);
  expect(tokensAt(bucket, { perS: 5, burst: 20 }, 0)).toBe(20);
  tryTakeToken(bucket, { perS: 5, burst: 3 }, 0);
  expect(tokensAt(bucket, { perS: 5, burst: 20 }, 0)).toBe(2);
  expect(tokensAt(bucket, { perS: 5, burst: 20 }, 1_000)).toBe(7);
});

test('no window of any length passes more than the burst and the tokens refilled in it', () => {
  const steps = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 200 });
  const rates = fc.record({
    perS: fc.integer({ min: 1, max: 50 }),
    burst: fc.integer({ min: 1, max: 20 }),
  });
  fc.assert(
    fc.property(steps, rates, (waits, rate) => {
      const bucket = fullBucket(0);
      const taken: number[] = [];
      let nowMs = 0;
      for (const waitMs of waits) {
        nowMs += waitMs;
        const isThere = waitForTokenMs(bucket, rate, nowMs) === 0;
        expect(tryTakeToken(bucket, rate, nowMs)).toBe(isThere);
        if (isThere) taken.push(nowMs);
      }
      for (const [at, begin] of taken.entries()) {
        for (const [more, end] of taken.slice(at).entries()) {
          const allowed = rate.burst + ((end - begin) / 1_000) * rate.perS;
          expect(more + 1).toBeLessThanOrEqual(allowed + 1e-6);
        }
      }
    }),
  );
});
