import { expect, it } from 'vitest';
import { dueCount, pillId, pillNumber, plannedMicros } from './plan.ts';

const plan = { startMicros: 1_000_000, perS: 1_000, pills: 5 };

it('a pill is due at start + i / rate, whatever happened to those before it', () => {
  expect([0, 1, 4].map((pill) => plannedMicros(plan, pill))).toEqual([1e6, 1_001_000, 1_004_000]);
});

it.each([
  [0, 0],
  [999_999, 0],
  [1_000_000, 1],
  [1_000_999, 1],
  [1_001_000, 2],
  [1_004_000, 5],
  [9_000_000, 5],
])('at %d µs %d pills are due', (now, due) => {
  expect(dueCount(plan, now)).toBe(due);
});

it.each([
  ['', -1],
  ['bench-a', -1],
  ['bench-aw-3', -1],
  ['bench-b-3', -1],
  ['bench-a-x', -1],
  [pillId('bench-a', 0), 0],
  [pillId('bench-a', 12_345), 12_345],
])('the id "%s" is pill %d of run bench-a', (id, number) => {
  expect(pillNumber('bench-a', id)).toBe(number);
});
