import { expect, test } from 'vitest';
import { openCalendars } from '../../../domain/market/calendars/calendar.ts';
import { closureOf } from './cadence-query.ts';

const tokyo = openCalendars()('XTKS');
const gap = (from: string, to: string) => ({ from, to, seconds: 0 });

test.each([
  ['the lunch break', '2026-11-20T11:30:00+09:00', '2026-11-20T12:30:01+09:00', 'lunch_break'],
  ['overnight', '2026-11-19T15:29:58+09:00', '2026-11-20T09:00:01+09:00', 'market_closed'],
  ['a holiday', '2026-11-23T01:00:00+09:00', '2026-11-23T20:00:00+09:00', 'holiday'],
  ['within the session', '2026-11-20T10:00:00+09:00', '2026-11-20T10:01:00+09:00', undefined],
  ['into the break', '2026-11-20T11:29:00+09:00', '2026-11-20T12:30:01+09:00', undefined],
  [
    'after the end of the calendar',
    '2049-12-30T00:00:00Z',
    '2050-02-01T00:00:00Z',
    'calendar_unknown',
  ],
])('%s', (_, from, to, reason) => {
  expect(closureOf(gap(from, to), 5_000, tokyo)).toBe(reason);
});

test('no calendar: unknown; a market that never closes: no closure', () => {
  const of = gap('2026-11-21T00:00:00Z', '2026-11-21T01:00:00Z');
  expect(closureOf(of, 5_000, undefined)).toBe('calendar_unknown');
  expect(closureOf(of, 5_000, 'ALWAYS')).toBeUndefined();
});
