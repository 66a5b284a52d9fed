import { expect, test } from 'vitest';
import { nextOpen, openCalendars, stateAt } from './calendar.ts';
import { parseOverrides } from './overrides.ts';

test('overrides close a day, open one late, shorten one and make a Saturday a session', () => {
  const text = JSON.stringify({
    XHKG: {
      '2026-09-21': 'closed',
      '2026-09-22': { open: '13:00', close: '16:00' },
      '2026-09-23': { open: '09:30', close: '12:00' },
      '2026-09-26': { open: '10:00', break_start: '11:00', break_end: '11:30', close: '12:00' },
    },
    FX: { '2026-12-25': 'closed' },
  });
  const parsed = parseOverrides(text);
  if (!parsed.ok) throw new Error(parsed.faults.join(' '));
  const calendarOf = openCalendars(parsed.overrides);
  const hongKong = calendarOf('XHKG');
  const state = (time: string) => stateAt(hongKong, Date.parse(time)).state;
  const typhoon = stateAt(hongKong, Date.parse('2026-09-21T10:00+08:00'));
  expect(typhoon).toMatchObject({ state: 'holiday', sessionDate: undefined, halfDay: false });
  expect(typhoon.since).toBe(Date.parse('2026-09-21T00:00+08:00'));
  expect(nextOpen(hongKong, Date.parse('2026-09-21T10:00+08:00'))).toBe(
    Date.parse('2026-09-22T13:00+08:00'),
  );
  expect(state('2026-09-22T10:00+08:00')).toBe('closed');
  expect(state('2026-09-22T15:59+08:00')).toBe('open');
  const short = stateAt(hongKong, Date.parse('2026-09-23T12:00+08:00'));
  expect(short).toMatchObject({ state: 'closed', halfDay: true, sessionDate: '2026-09-23' });
  expect(state('2026-09-26T11:15+08:00')).toBe('lunch_break');
  expect(state('2026-09-26T11:30+08:00')).toBe('open');
  expect(state('2026-09-24T10:00+08:00')).toBe('open');

  const fx = calendarOf('FX');
  const christmas = stateAt(fx, Date.parse('2026-12-24T22:00Z'));
  expect(christmas.state).toBe('holiday');
  expect(christmas.until).toBe(Date.parse('2026-12-25T22:00Z'));
  expect(nextOpen(fx, Date.parse('2026-12-24T22:00Z'))).toBe(Date.parse('2026-12-27T22:00Z'));
  // Without overrides, the day is an ordinary one.
  expect(stateAt(openCalendars()('FX'), Date.parse('2026-12-24T22:00Z')).state).toBe('open');
});

test.each([
  ['{}', []],
  ['{', [expect.any(String)]],
  ['[]', ['must be an object of venues.']],
  ['{"XNYS":{}}', [expect.stringMatching(/^XNYS: unknown venue\. Known venues: FX, .*XTKS\.$/)]],
  ['{"XHKG":["2026-09-21"]}', ['XHKG: must be an object of days.']],
  ['{"XHKG":{"2026-02-30":"closed"}}', ['XHKG 2026-02-30: is not a date such as 2026-09-21.']],
  ['{"XHKG":{"20260921":"closed"}}', ['XHKG 20260921: is not a date such as 2026-09-21.']],
  [
    '{"XHKG":{"2023-12-29":"closed"}}',
    [expect.stringMatching(/^XHKG 2023-12-29: is outside .*, 2024-01-01 to \d{4}-12-31\.$/)],
  ],
  ['{"XHKG":{"2026-09-21":"open"}}', [expect.stringMatching(/must be "closed" or/)]],
  ['{"XHKG":{"2026-09-21":null}}', [expect.stringMatching(/must be "closed" or/)]],
  ['{"XHKG":{"2026-09-21":{"open":"9:30"}}}', [expect.stringMatching(/: open, close: must be a/)]],
  [
    '{"XHKG":{"2026-09-21":{"open":"09:30","close":"25:00"}}}',
    [expect.stringMatching(/: close: must be a local time/)],
  ],
  [
    '{"XHKG":{"2026-09-21":{"open":"12:00","close":"09:30"}}}',
    [expect.stringMatching(/in this order: open < close/)],
  ],
  [
    '{"XHKG":{"2026-09-21":{"open":"09:30","break_start":"12:00","close":"16:00"}}}',
    [expect.stringMatching(/must be given together/)],
  ],
  [
    '{"XHKG":{"2026-09-21":{"open":"09:30","break_start":"13:00","break_end":"12:00","close":"16:00"}}}',
    [expect.stringMatching(/open < break_start < break_end < close/)],
  ],
  [
    '{"XHKG":{"2026-09-21":{"open":"09:30","close":"12:00","lunch":true}}}',
    [expect.stringMatching(/: lunch: unknown/)],
  ],
  ['{"XHKG":{"2026-09-21":"closed","2026-09-21":"closed"}}', [expect.stringContaining('09-21')]],
  ['{"XHKG":{"2026-09-21":1},"XTKS":{"x":1}}', [expect.any(String), expect.any(String)]],
])('%s has the faults %j', (text, faults) => {
  const parsed = parseOverrides(text);
  expect(parsed.ok ? [] : parsed.faults).toEqual(faults);
});
