import { expect, test } from 'vitest';
import { prefersCsv } from './prefers-csv.ts';

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
