import { expect, test } from 'vitest';
import { openCalendars } from './calendar.ts';
import { sessionsBetween } from './session-hours.ts';

const calendarOf = openCalendars();
const ms = (time: string) => Date.parse(time);

test('sessions span from the first open to the last close, lunch break included', () => {
  const found = sessionsBetween(
    calendarOf('XTKS'),
    ms('2026-11-20T00:00+09:00'),
    ms('2026-11-25T00:00+09:00'),
  );
  // A weekend and Labour Thanksgiving Day are in between.
  expect(found).toEqual([
    {
      date: '2026-11-20',
      openMs: ms('2026-11-20T09:00+09:00'),
      closeMs: ms('2026-11-20T15:30+09:00'),
    },
    {
      date: '2026-11-24',
      openMs: ms('2026-11-24T09:00+09:00'),
      closeMs: ms('2026-11-24T15:30+09:00'),
    },
  ]);
});

test('a half day ends at noon', () => {
  const [eve] = sessionsBetween(
    calendarOf('XHKG'),
    ms('2026-12-24T00:00+08:00'),
    ms('2026-12-25T00:00+08:00'),
  );
  expect(eve).toMatchObject({ closeMs: ms('2026-12-24T12:00+08:00') });
});

test.each([
  ['before the open', '2026-11-20T08:00+09:00', '2026-11-20T09:00+09:00', 0],
  ['its first minute', '2026-11-20T08:00+09:00', '2026-11-20T09:01+09:00', 1],
  ['its last minute', '2026-11-20T15:29+09:00', '2026-11-20T18:00+09:00', 1],
  ['after the close', '2026-11-20T15:30+09:00', '2026-11-20T18:00+09:00', 0],
  ['a weekend', '2026-11-21T00:00+09:00', '2026-11-22T23:00+09:00', 0],
])('%s: %#', (_, from, to, count) => {
  expect(sessionsBetween(calendarOf('XTKS'), ms(from), ms(to))).toHaveLength(count);
});
