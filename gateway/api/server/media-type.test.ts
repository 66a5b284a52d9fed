import { expect, test } from 'vitest';
import { chooseFormat, FORMATS, type Format } from './media-type.ts';

const ARROW = 'application/vnd.apache.arrow.stream';
const PARQUET = 'application/vnd.apache.parquet';

test.each([
  [undefined, 'json'],
  ['', 'json'],
  ['*/*', 'json'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['text/csv', 'csv'],
  ['text/*', 'csv'],
  ['TEXT/CSV; charset=utf-8', 'csv'],
  ['text/csv, application/json', 'csv'],
  ['application/json, text/csv', 'json'],
  ['application/json;q=0.5, text/csv', 'csv'],
  ['text/csv;q=0.5, */*', 'json'],
  ['text/csv;q=0, */*;q=0.1', 'json'],
  [ARROW, 'arrow'],
  [PARQUET, 'parquet'],
  [`${ARROW};q=0.2, ${PARQUET};q=0.9`, 'parquet'],
  [`${PARQUET};q=1.0, ${ARROW}`, 'parquet'],
  // The more specific range counts, also if it weighs less.
  [`application/*;q=0.9, application/json;q=0.1, ${PARQUET};q=0.5`, 'arrow'],
  ['application/json;q=0, */*', 'csv'],
  ['text/html, application/xhtml+xml', undefined],
  ['text/csv;q=0', undefined],
  ['text/csv;q=x', undefined],
] as const)('Accept: %s → %s', (accept, expected) => {
  expect(chooseFormat<Format>(undefined, accept, FORMATS)).toBe(expected);
});

test.each([
  ['json', 'text/csv'],
  ['csv', 'application/json'],
  ['parquet', 'text/html'],
] as const)('format=%s takes precedence over Accept: %s', (format, accept) => {
  expect(chooseFormat(format, accept, FORMATS)).toBe(format);
});

test('a format that is not offered is not chosen', () => {
  expect(chooseFormat<Format>(undefined, ARROW, ['json', 'csv'])).toBeUndefined();
  expect(chooseFormat<Format>(undefined, `${ARROW}, */*;q=0.1`, ['json', 'csv'])).toBe('json');
});
