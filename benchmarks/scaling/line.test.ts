import { expect, test } from 'vitest';
import { lineThrough } from './line.ts';

test('the line through points', () => {
  const points = [10, 100, 1_000].map((size) => ({ size, cost: 25 + 0.5 * size }));
  const { base, slope } = lineThrough(points);
  expect(base).toBeCloseTo(25);
  expect(slope).toBeCloseTo(0.5);
  const noisy = lineThrough([
    { size: 0, cost: 1 },
    { size: 1, cost: 0 },
    { size: 2, cost: 5 },
  ]);
  expect([noisy.base, noisy.slope]).toEqual([0, 2]);
  expect(lineThrough([{ size: 5, cost: 1 }]).slope).toBeNaN();
});
