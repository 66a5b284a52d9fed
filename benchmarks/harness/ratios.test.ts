import { expect, test } from 'vitest';
import { median } from './ratios.ts';

test.each([
  [[3], 3],
  [[1, 9, 2], 2],
  [[4, 1, 2, 3], 2.5],
  [[], Number.NaN],
])('the median of %j is %d', (values, middle) => {
  expect(median(values)).toBe(middle);
});
