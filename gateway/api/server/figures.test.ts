import { expect, test } from 'vitest';
import { roundFigure, roundFigures } from './figures.ts';

test.each([
  ['spread', 0.1 + 0.2, 0.3],
  ['spread', -0.123_456_789_49, -0.123_456_789],
  ['spread', 1.4e-17, 0],
  ['confidence', 83.247_118_04, 83.247_118],
  ['share', 2 / 3, 0.666_667],
  ['share', 1 - 2 ** -53, 1],
  ['z', 26.333_333, 26.3333],
  ['seconds', 16_200.5 + 2 ** -38, 16_200.5],
  ['ms', 980.000_499, 980],
  ['spread', null, null],
  // A figure of this size has no decimals.
  ['spread', 1e300, 1e300],
] as const)('%s: %s becomes %s', (kind, value, expected) => {
  expect(JSON.stringify(roundFigure(kind, value))).toBe(JSON.stringify(expected));
});

test('of a row, only the named figures are rounded', () => {
  const row = { open: 0.1 + 0.2, mean: 0.1 + 0.2, z: null, symbol: '7203.T' };
  expect(roundFigures(row, { mean: 'spread', z: 'z' })).toEqual({ ...row, mean: 0.3 });
});
