import { expect, test } from 'vitest';
import { createTokenBuckets } from './token-buckets.ts';

/** Steps of one account with 10 calls per second and a burst of 20. */
const ROWS: readonly {
  name: string;
  takes: readonly { atMs: number; times: number }[];
  last: { remaining: number; resetS: number; retryAfterS: number };
}[] = [
  {
    name: 'the first call leaves the burst minus one',
    takes: [{ atMs: 0, times: 1 }],
    last: { remaining: 19, resetS: 1, retryAfterS: 0 },
  },
  {
    name: 'the whole burst passes at once',
    takes: [{ atMs: 0, times: 20 }],
    last: { remaining: 0, resetS: 2, retryAfterS: 0 },
  },
  {
    name: 'one more is refused, for at least a second',
    takes: [{ atMs: 0, times: 21 }],
    last: { remaining: 0, resetS: 2, retryAfterS: 1 },
  },
  {
    name: 'refused calls take no tokens: one call passes after 100 ms',
    takes: [
      { atMs: 0, times: 50 },
      { atMs: 100, times: 1 },
    ],
    last: { remaining: 0, resetS: 2, retryAfterS: 0 },
  },
  {
    name: 'a bucket does not fill beyond the burst',
    takes: [
      { atMs: 0, times: 20 },
      { atMs: 3_600_000, times: 1 },
    ],
    last: { remaining: 19, resetS: 1, retryAfterS: 0 },
  },
];

test.each(ROWS)('$name', ({ takes, last }) => {
  const buckets = createTokenBuckets();
  let verdict: unknown;
  for (const { atMs, times } of takes) {
    for (let i = 0; i < times; i += 1) verdict = buckets.take('acc_a', 10, 20, atMs);
  }
  expect(verdict).toEqual({ limit: 20, windowS: 2, ...last });
});

test('a rate below 1 per second reports the wait and rounds the window up', () => {
  const buckets = createTokenBuckets();
  expect(buckets.take('acc_a', 0.3, 1, 0)).toMatchObject({ windowS: 4, retryAfterS: 0 });
  expect(buckets.take('acc_a', 0.3, 1, 0)).toMatchObject({ retryAfterS: 4 });
});

test('accounts do not share a bucket, and peek takes no token', () => {
  const buckets = createTokenBuckets();
  buckets.take('acc_a', 1, 1, 0);
  expect(buckets.take('acc_b', 1, 1, 0).retryAfterS).toBe(0);
  expect(buckets.peek('acc_a', 1, 1, 0).remaining).toBe(0);
  expect(buckets.peek('acc_c', 1, 1, 0).remaining).toBe(1);
  expect(buckets.peek('acc_a', 1, 1, 1_000).remaining).toBe(1);
  expect(buckets.take('acc_a', 1, 1, 1_000).retryAfterS).toBe(0);
});

test('a raised rate applies from the next call', () => {
  const buckets = createTokenBuckets();
  for (let i = 0; i < 20; i += 1) buckets.take('acc_a', 10, 20, 0);
  expect(buckets.take('acc_a', 500, 1_000, 10).remaining).toBe(4);
});

test('at the bound full buckets are evicted first, then the oldest', () => {
  const buckets = createTokenBuckets(3);
  buckets.take('acc_full', 10, 20, 0);
  for (let i = 0; i < 20; i += 1) buckets.take('acc_empty', 10, 20, 1_000);
  buckets.take('acc_c', 10, 20, 1_000);
  buckets.take('acc_d', 10, 20, 1_001);
  expect(buckets.size).toBe(3);
  expect(buckets.peek('acc_empty', 10, 20, 1_001).remaining).toBe(0);
  buckets.take('acc_e', 10, 20, 1_002);
  expect(buckets.size).toBe(3);
  expect(buckets.peek('acc_empty', 10, 20, 1_002).remaining).toBe(20);
});
