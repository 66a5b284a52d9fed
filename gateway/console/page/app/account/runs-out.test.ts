import { expect, test } from 'vitest';
import { runsOutAt } from './runs-out.ts';

const at = (used: number, limit: number | null, projected: number | null) =>
  runsOutAt({ day: '2026-11-20', used, limit, projected });

test.each([
  ['no limit', at(5_000, null, 50_000)],
  ['no plan', at(0, 0, null)],
  ['too early to tell', at(10, 1_000, null)],
  ['the day ends before', at(100, 1_000, 1_000)],
])('%s: the quota does not run out', (_, end) => {
  expect(end).toBeUndefined();
});

test('a pace of twice the limit uses it up at noon', () => {
  expect(at(100, 1_000, 2_000)).toBe('2026-11-20T12:00:00.000Z');
});

test('a quota that is used up has run out', () => {
  expect(Date.parse(at(1_000, 1_000, 4_000)!)).toBeLessThanOrEqual(Date.now());
});
