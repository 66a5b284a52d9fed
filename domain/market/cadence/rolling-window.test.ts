import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRollingWindow, robustZ } from './rolling-window.ts';

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >>> 1] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[sorted.length / 2 - 1] ?? NaN) + upper) / 2;
}

describe('a rolling window', () => {
  test('has the median and MAD that sorting gives, for any input', () => {
    const value = fc.oneof(
      fc.double({ min: -1e6, max: 1e6, noNaN: true }),
      fc.integer({ min: -3, max: 3 }),
    );
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        (series, size) => {
          const window = createRollingWindow(size);
          for (const [at, next] of series.entries()) {
            window.push(next);
            const held = series.slice(Math.max(0, at + 1 - size), at + 1);
            expect(window.length).toBe(held.length);
            // 0 and -0 may come in either order.
            expect(window.median() + 0).toBe(medianOf(held) + 0);
            const distances = held.map((of) => Math.abs(of - medianOf(held)));
            expect(window.mad()).toBeCloseTo(medianOf(distances), 9);
          }
        },
      ),
    );
  });

  test('an empty window has no median and no MAD', () => {
    expect(createRollingWindow(3).median()).toBeNaN();
    expect(createRollingWindow(3).mad()).toBeNaN();
  });
});

test.each([
  ['the example of the documentation', 0.9, 0.12, 0.02, 26.3],
  ['the median itself', 5, 5, 1, 0],
  ['below', -1, 0, 0.6745, -1],
  ['nothing varies', 5, 4, 0, null],
])('%s', (_, value, median, mad, z) => {
  const found = robustZ(value, median, mad);
  if (z === null) expect(found).toBeNull();
  else expect(found).toBeCloseTo(z, 1);
});
