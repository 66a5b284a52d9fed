import { expect, test } from 'vitest';
import { isRangeBackwards, type PillFilter, passesFilter } from './pill-filter.ts';

const NONE = { minConfidence: undefined, minSpread: undefined, maxSpread: undefined, states: [] };
const PILL = { gross_spread_percent: -0.5, market_state: 'open', confidence: 80 };

test.each<[Partial<PillFilter>, boolean]>([
  [{}, true],
  [{ minConfidence: 80 }, true],
  [{ minConfidence: 80.1 }, false],
  [{ minSpread: -0.5, maxSpread: -0.5 }, true],
  [{ minSpread: -0.4 }, false],
  [{ maxSpread: -0.6 }, false],
  [{ minSpread: 0 }, false],
  [{ states: ['closed', 'open'] }, true],
  [{ states: ['Open'] }, false],
  [{ minConfidence: 1, minSpread: -1, maxSpread: 1, states: ['closed'] }, false],
])('bounds are inclusive, an empty list of states passes all: %j', (filter, passes) => {
  expect(passesFilter({ ...NONE, ...filter }, PILL)).toBe(passes);
});

test('a range is backwards only if both bounds are given, the upper one below the lower one', () => {
  expect(isRangeBackwards({})).toBe(false);
  expect(isRangeBackwards({ minSpread: 1, maxSpread: undefined })).toBe(false);
  expect(isRangeBackwards({ minSpread: 1, maxSpread: 1 })).toBe(false);
  expect(isRangeBackwards({ minSpread: 1, maxSpread: 0.9 })).toBe(true);
});
