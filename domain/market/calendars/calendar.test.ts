import { describe, expect, test } from 'vitest';
import { type MarketState, nextOpen, openCalendars, stateAt } from './calendar.ts';
import { VENUES, type Venue } from './venue.ts';
import { readVenueDays } from './venue-days.ts';

const calendarOf = openCalendars();
const at = (venue: Venue, time: string) => stateAt(calendarOf(venue), Date.parse(time));

describe('known facts', () => {
  test.each<[Venue, string, MarketState]>([
    // Tokyo: lunch 11:30 to 12:30; close 15:30 since 2024-11-05, 15:00 before.
    ['XTKS', '2026-11-20T08:59:59.999+09:00', 'closed'],
    ['XTKS', '2026-11-20T09:00:00.000+09:00', 'open'],
    ['XTKS', '2026-11-20T11:29:59.999+09:00', 'open'],
    ['XTKS', '2026-11-20T11:30:00.000+09:00', 'lunch_break'],
    ['XTKS', '2026-11-20T12:29:59.999+09:00', 'lunch_break'],
    ['XTKS', '2026-11-20T12:30:00.000+09:00', 'open'],
    ['XTKS', '2026-11-20T15:29:59.999+09:00', 'open'],
    ['XTKS', '2026-11-20T15:30:00.000+09:00', 'closed'],
    ['XTKS', '2024-11-01T15:00:00.000+09:00', 'closed'],
    ['XTKS', '2024-11-05T15:00:00.000+09:00', 'open'],
    // Golden Week 2026: Monday to Wednesday; a weekend; the year's end.
    ['XTKS', '2026-05-01T10:00+09:00', 'open'],
    ['XTKS', '2026-05-04T10:00+09:00', 'holiday'],
    ['XTKS', '2026-05-06T10:00+09:00', 'holiday'],
    ['XTKS', '2026-05-07T10:00+09:00', 'open'],
    ['XTKS', '2026-11-21T10:00+09:00', 'closed'],
    ['XTKS', '2026-12-31T10:00+09:00', 'holiday'],
    // The holiday is a day in Tokyo, not in UTC.
    ['XTKS', '2026-05-03T15:00Z', 'holiday'],
    ['XTKS', '2026-05-03T14:59Z', 'closed'],
    // Hong Kong: lunch at 12:00, half days, Lunar New Year, a typhoon.
    ['XHKG', '2026-11-20T12:00+08:00', 'lunch_break'],
    ['XHKG', '2026-11-20T13:00+08:00', 'open'],
    ['XHKG', '2026-11-20T16:00+08:00', 'closed'],
    ['XHKG', '2026-12-24T11:59+08:00', 'open'],
    ['XHKG', '2026-12-24T12:00+08:00', 'closed'],
    ['XHKG', '2026-02-17T10:00+08:00', 'holiday'],
    ['XHKG', '2024-09-06T10:00+08:00', 'holiday'],
    // China: Spring Festival to 2026-02-23, National Day; lunch 11:30 to 13:00.
    ['XSHG', '2026-02-13T10:00+08:00', 'open'],
    ['XSHG', '2026-02-16T10:00+08:00', 'holiday'],
    ['XSHG', '2026-02-23T10:00+08:00', 'holiday'],
    ['XSHG', '2026-02-24T10:00+08:00', 'open'],
    ['XSHE', '2026-10-07T10:00+08:00', 'holiday'],
    ['XSHE', '2026-10-08T12:59+08:00', 'lunch_break'],
    ['XSHE', '2026-10-08T13:00+08:00', 'open'],
    // Korea: an hour later on the day of the CSAT, later on the year's first day; elections.
    ['XKRX', '2026-11-19T09:59+09:00', 'closed'],
    ['XKRX', '2026-11-19T10:00+09:00', 'open'],
    ['XKRX', '2026-11-19T16:29+09:00', 'open'],
    ['XKRX', '2026-11-20T15:30+09:00', 'closed'],
    ['XKRX', '2026-01-02T09:59+09:00', 'closed'],
    ['XKRX', '2026-06-03T10:00+09:00', 'holiday'],
    ['XKRX', '2026-07-17T10:00+09:00', 'holiday'],
    ['XTAI', '2026-11-20T13:29+08:00', 'open'],
    ['XTAI', '2026-11-20T13:30+08:00', 'closed'],
    ['XTAI', '2026-02-12T10:00+08:00', 'holiday'],
    // India: no lunch, Diwali evenings, budget Sunday.
    ['XBOM', '2026-11-20T12:30+05:30', 'open'],
    ['XNSE', '2026-11-20T15:30+05:30', 'closed'],
    ['XNSE', '2024-11-01T12:00+05:30', 'closed'],
    ['XNSE', '2024-11-01T18:30+05:30', 'open'],
    ['XBOM', '2026-02-01T12:00+05:30', 'open'],
    ['XBOM', '2026-02-08T12:00+05:30', 'closed'],
    // Breaks that are missing from the package.
    ['XSES', '2026-11-20T12:30+08:00', 'lunch_break'],
    ['XSES', '2026-12-24T12:30+08:00', 'closed'],
    ['XBKK', '2024-03-22T14:15+07:00', 'lunch_break'],
    ['XBKK', '2024-03-25T14:15+07:00', 'open'],
    ['XKLS', '2026-11-20T14:29+08:00', 'lunch_break'],
    ['XPHS', '2026-11-20T12:59+08:00', 'lunch_break'],
    ['XPHS', '2026-11-20T15:00+08:00', 'closed'],
    // Jakarta: a longer break on Fridays; Eid 2026.
    ['XIDX', '2026-11-19T11:45+07:00', 'open'],
    ['XIDX', '2026-11-20T11:45+07:00', 'lunch_break'],
    ['XIDX', '2026-03-20T10:00+07:00', 'holiday'],
    // Clocks that change: Sydney 2026-10-04, Auckland 2026-09-27, both forward.
    ['XASX', '2026-10-01T23:59Z', 'closed'],
    ['XASX', '2026-10-02T00:00Z', 'open'],
    ['XASX', '2026-10-05T22:59Z', 'closed'],
    ['XASX', '2026-10-05T23:00Z', 'open'],
    ['XASX', '2026-12-24T14:10+11:00', 'closed'],
    ['XNZE', '2026-09-24T22:00Z', 'open'],
    ['XNZE', '2026-09-24T21:59Z', 'closed'],
    ['XNZE', '2026-09-28T21:00Z', 'open'],
    ['XNZE', '2026-09-28T20:59Z', 'closed'],
    // Currencies: Sunday 22:00 to Friday 22:00 UTC.
    ['FX', '2026-11-20T21:59:59.999Z', 'open'],
    ['FX', '2026-11-20T22:00:00.000Z', 'closed'],
    ['FX', '2026-11-22T21:59:59.999Z', 'closed'],
    ['FX', '2026-11-22T22:00:00.000Z', 'open'],
    ['FX', '2026-11-25T22:00:00.000Z', 'open'],
  ])('%s at %s: %s', (venue, time, state) => {
    expect(at(venue, time).state).toBe(state);
  });

  test.each<[Venue, string, boolean, string | undefined]>([
    ['XHKG', '2026-12-24T08:00+08:00', true, '2026-12-24'],
    ['XHKG', '2026-12-23T08:00+08:00', false, '2026-12-23'],
    ['XHKG', '2026-12-25T08:00+08:00', false, undefined],
    ['XKRX', '2026-01-02T12:00+09:00', false, '2026-01-02'],
    ['XASX', '2026-12-31T13:00Z', false, undefined],
    ['XASX', '2026-12-31T12:59Z', true, '2026-12-31'],
    ['XBOM', '2025-10-21T14:00+05:30', true, '2025-10-21'],
    ['XBOM', '2026-02-01T12:00+05:30', false, '2026-02-01'],
    ['FX', '2026-11-22T22:00Z', false, '2026-11-23'],
    ['FX', '2026-11-21T12:00Z', false, undefined],
  ])('%s at %s: half day %s, session of %s', (venue, time, halfDay, sessionDate) => {
    expect(at(venue, time)).toMatchObject({ halfDay, sessionDate });
  });
});

test('a lunch break has its start, its end and the next state', () => {
  const end = Date.parse('2026-11-20T03:30Z');
  expect(at('XTKS', '2026-11-20T02:45Z')).toEqual({
    state: 'lunch_break',
    since: Date.parse('2026-11-20T02:30Z'),
    until: end,
    next: { at: end, state: 'open' },
    sessionDate: '2026-11-20',
    halfDay: false,
    timezone: 'Asia/Tokyo',
    calendarUntil: readVenueDays('XTKS').until,
  });
});

test('a weekend is one closure, a holiday ends the closure, and the next open follows both', () => {
  const friday = at('XTKS', '2026-11-21T12:00+09:00');
  expect(friday.since).toBe(Date.parse('2026-11-20T15:30+09:00'));
  // 2026-11-23 is Labour Thanksgiving Day.
  expect(friday.next).toEqual({ at: Date.parse('2026-11-23T00:00+09:00'), state: 'holiday' });
  expect(nextOpen(calendarOf('XTKS'), Date.parse('2026-11-21T12:00+09:00'))).toBe(
    Date.parse('2026-11-24T09:00+09:00'),
  );
  const week = at('FX', '2026-11-25T12:00Z');
  expect([week.since, week.until]).toEqual([
    Date.parse('2026-11-22T22:00Z'),
    Date.parse('2026-11-27T22:00Z'),
  ]);
});

describe.each(VENUES)('%s', (venue) => {
  const calendar = calendarOf(venue);
  const days = readVenueDays(venue);
  const ends = [calendar.times[0]!, calendar.times.at(-1)!] as const;

  test('is known from its first to its last local midnight, and unknown outside', () => {
    const local = new Intl.DateTimeFormat('sv', {
      timeZone: days.timezone,
      dateStyle: 'short',
      timeStyle: 'medium',
    });
    expect(local.format(ends[0])).toBe(`${days.from} 00:00:00`);
    expect(local.format(ends[1] - 1)).toBe(`${days.until} 23:59:59`);
    expect(stateAt(calendar, ends[0]).state).not.toBe('unknown');
    expect(stateAt(calendar, ends[1] - 1)).toMatchObject({ until: undefined, next: undefined });
    expect(stateAt(calendar, ends[1] - 1).state).not.toBe('unknown');
    const nothing = { state: 'unknown', until: undefined, sessionDate: undefined, halfDay: false };
    expect(stateAt(calendar, ends[1])).toMatchObject({ ...nothing, since: ends[1] });
    for (const time of [ends[0] - 1, -1e15, Number.NaN]) {
      expect(stateAt(calendar, time)).toMatchObject({ ...nothing, since: undefined });
      expect(nextOpen(calendar, time)).toBeUndefined();
    }
    expect(nextOpen(calendar, ends[1] - 1)).toBeUndefined();
  });

  test('has ascending times and distinct neighbouring states, and agrees with the ICU time zone', () => {
    const local = new Intl.DateTimeFormat('sv', {
      timeZone: days.timezone,
      dateStyle: 'short',
      timeStyle: 'short',
    });
    const faults: string[] = [];
    const trades = new Set(calendar.sessions.map(({ date }) => date));
    for (const [index, time] of calendar.times.entries()) {
      const state = calendar.states[index]!;
      const [date, minute] = local.format(time).split(' ') as [string, string];
      const found = stateAt(calendar, time);
      const right = [
        index === 0 || time > calendar.times[index - 1]!,
        state !== calendar.states[index - 1],
        found.state === state,
        state !== 'holiday' || (minute === '00:00' && !trades.has(date)),
        (state !== 'open' && state !== 'lunch_break') || found.sessionDate === date,
        state !== 'open' || openings(date).includes(minute),
      ];
      if (right.includes(false)) faults.push(`${date} ${minute} ${state} ${right}`);
    }
    expect(faults).toEqual([]);
    expect(calendar.sessions.length).toBeGreaterThan(700);
  });

  /** Beginnings of the periods of a day, as the file has them. */
  function openings(date: string): string[] {
    const week = Object.entries(days.week).findLast(([from]) => from <= date)![1];
    const weekday = (new Date(date).getUTCDay() + 6) % 7;
    const hours = days.special[date] ?? week[weekday]!;
    return hours.split(' ').map((period) => period.slice(0, 5));
  }
});

test.each<[Venue, string, string, number]>([
  // Trading days as published by the exchanges: IDX Peng-00171/BEI.POP/09-2025; JPX 2024; HKEX 2025.
  ['XIDX', '2026-01-01', '2026-12-31', 239],
  ['XTKS', '2024-01-01', '2024-12-31', 245],
])('%s has from %s to %s %i sessions', (venue, from, until, count) => {
  const { sessions } = calendarOf(venue);
  expect(sessions.filter(({ date }) => date >= from && date <= until)).toHaveLength(count);
});

test('each file names its source; XSHE and XNSE equal their neighbours', () => {
  for (const venue of VENUES) {
    expect(readVenueDays(venue).source).toMatch(/^exchange_calendars 4\.|^own rule/);
  }
  const pick = ({ week, closed, special, until }: ReturnType<typeof readVenueDays>) => [
    ...[week, closed, special, until],
  ];
  expect(pick(readVenueDays('XSHE'))).toEqual(pick(readVenueDays('XSHG')));
  expect(pick(readVenueDays('XNSE'))).toEqual(pick(readVenueDays('XBOM')));
  expect(readVenueDays('XSHE').source).toContain('the package has no XSHE');
});
