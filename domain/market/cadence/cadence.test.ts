import { describe, expect, test } from 'vitest';
import { seededRandom, testSeed } from '../../../testing/seed.ts';
import { createCadences, lateAfterMs } from './cadence.ts';

const MS = 1_000;

/** Records arrivals at these intervals, in ms. */
function withIntervals(intervals: readonly number[]) {
  const cadences = createCadences(10);
  let at = 1_763_600_000_000_000;
  cadences.note('A', at);
  for (const interval of intervals) {
    at += interval * MS;
    cadences.note('A', at);
  }
  return cadences.medianMs('A');
}

describe('the median cadence', () => {
  test.each<[string, readonly number[], number | undefined]>([
    ['no median before the second pill', [], undefined],
    ['one interval is its own median', [700], 700],
    ['the upper of two intervals, so that `late` is not reported too early', [100, 900], 900],
    ['one lunch break does not change the median', [1_000, 1_000, 3_600_000, 1_000, 1_000], 1_000],
    [
      'intervals before the last 15 do not count',
      [...Array(40).fill(100), ...Array(8).fill(9_000)],
      9_000,
    ],
    ['the last 15 intervals all count', [...Array(40).fill(100), ...Array(7).fill(9_000)], 100],
    ['pills of one batch are one arrival', [10, 10, 2_000, 5, 5, 2_000, 1, 2_000], 2_010],
    ['pills faster than an arrival have an interval of one arrival', Array(1_000).fill(1), 50],
    ['a clock that goes back changes nothing', [1_000, -400, 1_400], 1_000],
  ])('%s', (_, intervals, median) => {
    expect(withIntervals(intervals)).toBe(median);
  });

  test('equals the median of the last 15 intervals for any input', () => {
    const random = seededRandom();
    for (let round = 0; round < 200; round += 1) {
      const intervals = Array.from({ length: Math.ceil(random() * 40) }, () =>
        Math.round(50 + random() * 100_000),
      );
      const last = intervals.slice(-15).sort((a, b) => a - b);
      expect(withIntervals(intervals), `TEST_SEED=${testSeed}`).toBe(last[last.length >>> 1]);
    }
  });

  test('symbols stay independent while the memory grows up to its bound', () => {
    const cadences = createCadences(1_000);
    for (let pill = 0; pill <= 15; pill += 1) {
      for (let n = 0; n < 1_001; n += 1) cadences.note(`S${n}`, 1e15 + pill * (100 + n) * MS);
    }
    expect(cadences.size).toBe(1_000);
    for (let n = 0; n < 1_000; n += 1) expect(cadences.medianMs(`S${n}`)).toBe(100 + n);
    expect(cadences.medianMs('S1000')).toBeUndefined();
  });
});

test.each([
  [undefined, 5_000],
  [20, 5_000],
  [1_000, 5_000],
  [1_001, 5_005],
  [60_000, 300_000],
])('a median of %s ms is late after %i ms', (median, late) => {
  expect(lateAfterMs(median)).toBe(late);
});
