import { expect, test } from 'vitest';
import { spreadFigures } from './spread.ts';

const of = (values: readonly number[], value: number) =>
  spreadFigures(Float64Array.from(values), value);

test('median, percentiles and the modified z-score, as computed by hand', () => {
  const figures = of([0.1, 0.5, 0.3, 0.2, 0.4], 0.5);
  expect(figures).toMatchObject({ n: 5, median: 0.3, percentile: 1 });
  expect(figures.p01).toBeCloseTo(0.104, 12);
  expect(figures.p99).toBeCloseTo(0.496, 12);
  // The distances are 0.2 0.1 0 0.1 0.2, so the MAD is 0.1.
  expect(figures.robustZ).toBeCloseTo((0.6745 * 0.2) / 0.1, 9);
  expect(of([1, 2, 3, 4], 2)).toMatchObject({ median: 2.5, percentile: 0.5 });
});

test('if most values are equal, the mean deviation replaces the MAD', () => {
  const values = [...Array.from({ length: 29 }, () => 0.1), 0.4];
  expect(of(values, 0.1).robustZ).toBe(0);
  expect(of(values, 0.4).robustZ).toBeCloseTo(0.3 / (0.01 * Math.sqrt(Math.PI / 2)), 6);
});

test('if all values are equal, any other value is infinitely far', () => {
  expect(of([0.1, 0.1], 0.1).robustZ).toBe(0);
  expect(of([0.1, 0.1], 0.2).robustZ).toBe(Number.POSITIVE_INFINITY);
  expect(of([0.1, 0.1], 0).robustZ).toBe(Number.NEGATIVE_INFINITY);
});
