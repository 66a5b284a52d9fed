import { expect, test } from 'vitest';
import { createBursts } from './burst.ts';

/** Steps on one account with 10 calls a second and a burst of 20. */
const ROWS: readonly {
  name: string;
  takes: readonly { atMs: number; times: number }[];
  last: { remaining: number; resetS: number; retryAfterS: number };
}[] = [
  {
    name: 'the first call leaves the burst less one',
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
    name: 'refused calls cost nothing: one passes after 100 ms',
    takes: [
      { atMs: 0, times: 50 },
      { atMs: 100, times: 1 },
    ],
    last: { remaining: 0, resetS: 2, retryAfterS: 0 },
  },
  {
    name: 'it does not fill beyond the burst',
    takes: [
      { atMs: 0, times: 20 },
      { atMs: 3_600_000, times: 1 },
    ],
    last: { remaining: 19, resetS: 1, retryAfterS: 0 },
  },
];

test.each(ROWS)('$name', ({ takes, last }) => {
  const bursts = createBursts();
  let verdict: unknown;
  for (const { atMs, times } of takes) {
    for (let i = 0; i < times; i += 1) verdict = bursts.take('acc_a', 10, 20, atMs);
  }
  expect(verdict).toEqual({ limit: 20, windowS: 2, ...last });
});

test('a rate under 1 a second says how long to wait, and rounds the window up', () => {
  const bursts = createBursts();
  expect(bursts.take('acc_a', 0.3, 1, 0)).toMatchObject({ windowS: 4, retryAfterS: 0 });
  expect(bursts.take('acc_a', 0.3, 1, 0)).toMatchObject({ retryAfterS: 4 });
});

test('accounts do not share a bucket, and a look takes nothing', () => {
  const bursts = createBursts();
  bursts.take('acc_a', 1, 1, 0);
  expect(bursts.take('acc_b', 1, 1, 0).retryAfterS).toBe(0);
  expect(bursts.peek('acc_a', 1, 1, 0).remaining).toBe(0);
  expect(bursts.peek('acc_c', 1, 1, 0).remaining).toBe(1);
  expect(bursts.peek('acc_a', 1, 1, 1_000).remaining).toBe(1);
  expect(bursts.take('acc_a', 1, 1, 1_000).retryAfterS).toBe(0);
});

test('a raised rate holds from the next call on', () => {
  const bursts = createBursts();
  for (let i = 0; i < 20; i += 1) bursts.take('acc_a', 10, 20, 0);
  expect(bursts.take('acc_a', 500, 1_000, 10).remaining).toBe(4);
});

test('at the bound full buckets go first, then the oldest', () => {
  const bursts = createBursts(3);
  bursts.take('acc_full', 10, 20, 0);
  for (let i = 0; i < 20; i += 1) bursts.take('acc_empty', 10, 20, 1_000);
  bursts.take('acc_c', 10, 20, 1_000);
  bursts.take('acc_d', 10, 20, 1_001);
  expect(bursts.size).toBe(3);
  expect(bursts.peek('acc_empty', 10, 20, 1_001).remaining).toBe(0);
  bursts.take('acc_e', 10, 20, 1_002);
  expect(bursts.size).toBe(3);
  expect(bursts.peek('acc_empty', 10, 20, 1_002).remaining).toBe(20);
});
