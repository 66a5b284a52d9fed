import { expect, test } from 'vitest';
import { csvOf, isCsvWanted, prefersCsv } from './csv.ts';

test.each([
  [undefined, false],
  ['', false],
  ['*/*', false],
  ['application/json', false],
  ['text/csv', true],
  ['TEXT/CSV; charset=utf-8', true],
  ['text/csv, application/json', true],
  ['application/json, text/csv', false],
  ['application/json;q=0.5, text/csv', true],
  ['text/csv;q=0.5, */*', false],
  ['text/csv;q=0, */*;q=0.1', false],
  ['text/csv;q=x', false],
  ['text/*', false],
])('Accept: %s → %s', (accept, expected) => {
  expect(prefersCsv(accept)).toBe(expected);
});

test.each([
  [undefined, 'text/csv', true],
  [undefined, undefined, false],
  ['json', 'text/csv', false],
  ['csv', 'application/json', true],
] as const)('format=%s, Accept: %s → %s', (format, accept, expected) => {
  expect(isCsvWanted(format, accept)).toBe(expected);
});

test('booleans are true and false, null is empty, lines end as in RFC 4180', () => {
  const rows = [
    { name: 'a,"b"', isFinal: true, z: null, more: 1 },
    { name: 'c', isFinal: false, z: 0.5, more: 2 },
  ];
  expect(csvOf({ columns: ['name', 'isFinal', 'z'], rows })).toBe(
    'name,isFinal,z\r\n"a,""b""",true,\r\nc,false,0.5\r\n',
  );
});
