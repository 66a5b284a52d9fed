import { expect, test } from 'vitest';
import { attemptQuery } from './attempt-filter.tsx';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const of = (filter: object) =>
  attemptQuery({ outcome: '', code: '', since: '', ...filter }, NOW).replace('limit=50', '');

test.each([
  [{}, ''],
  [{ outcome: 'retry' }, '&outcome=retry'],
  [{ code: '0' }, '&status=0'],
  [{ code: '<b>' }, ''],
  [{ since: '1h' }, '&from=2026-11-20T11%3A00%3A00.000Z'],
  [{ since: 'for ever' }, ''],
  [{ outcome: 'failed', code: '503' }, '&outcome=failed&status=503'],
])('%j asks for %s', (filter, text) => {
  expect(of(filter)).toBe(text);
});
