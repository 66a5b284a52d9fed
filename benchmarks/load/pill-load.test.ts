import { expect, it } from 'vitest';
import { pillId, pillNumber } from './pill-load.ts';

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
