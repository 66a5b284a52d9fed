import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatPosition, parseCursor, parsePosition } from './position.ts';

test.each([
  '',
  'k7f3',
  ':0-1',
  'K7F3:0-1',
  'k7f3:0',
  'k7f3:0-',
  'k7f3:-1-2',
  'k7f3:00-1',
  'k7f3:0-01',
  'k7f3:0-1,',
  'k7f3:0-1,0-2',
  'k7f3:0-1;1-2',
  'k7f3:0-99999999999999999',
  `k7f3:${'0-1,'.repeat(10_000)}`,
])('%s is not a position', (text) => {
  expect(parsePosition(text)).toBeUndefined();
});

test('a position lists each partition once, ascending, and parses back to itself', () => {
  const offsets = fc.uniqueArray(
    fc.tuple(fc.nat({ max: 99_999 }), fc.nat({ max: Number.MAX_SAFE_INTEGER })),
    { selector: ([partition]) => partition, maxLength: 50 },
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{1,16}$/), offsets, (epoch, entries) => {
      const parsed = parsePosition(formatPosition(epoch, new Map(entries)));
      expect(parsed?.epoch).toBe(epoch);
      expect(parsed?.offsets).toEqual(new Map(entries));
    }),
  );
});

test('an empty position means the beginning', () => {
  expect(parsePosition('k7f3:')).toEqual({ epoch: 'k7f3', offsets: new Map() });
});

test('a cursor has a partition and an offset', () => {
  expect(parseCursor('3-132')).toEqual({ partition: 3, offset: 132 });
  for (const text of ['3', '3-', '-3', 'a-b', '3-1 ', '3-1-1']) {
    expect(parseCursor(text)).toBeUndefined();
  }
});
