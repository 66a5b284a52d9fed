import { expect, test } from 'vitest';
import { createVenueOf, NO_RULES } from '../calendars/venue-rules.ts';
import { createMarkets } from './markets.ts';
import { ALWAYS_OPEN, NO_CALENDAR } from './silence.ts';

const ms = (time: string) => Date.parse(time);

test('a venue’s state through a day, a weekend and a holiday has its start and the next open', () => {
  const markets = createMarkets();
  const at = (time: string) => markets.of('7203.T', ms(time));
  expect(at('2026-11-20T10:00+09:00')).toEqual({
    state: 'open',
    sinceMs: ms('2026-11-20T09:00+09:00'),
    opensMs: undefined,
  });
  expect(at('2026-11-20T11:45+09:00')).toEqual({
    state: 'lunch_break',
    sinceMs: ms('2026-11-20T11:30+09:00'),
    opensMs: ms('2026-11-20T12:30+09:00'),
  });
  // The Saturday before Labour Thanksgiving Day: the market opens on Tuesday.
  const opensMs = ms('2026-11-24T09:00+09:00');
  expect(at('2026-11-21T12:00+09:00')).toMatchObject({ state: 'closed', opensMs });
  expect(at('2026-11-23T12:00+09:00')).toMatchObject({ state: 'holiday', opensMs });
  // Beyond the calendar, the state is unknown.
  expect(at('2099-01-05T10:00+09:00')).toMatchObject({ state: 'unknown', opensMs: undefined });
});

test('an answer is the same object until it changes, even when the clock goes back', () => {
  const { of } = createMarkets();
  const before = of('0700.HK', ms('2026-11-20T09:30+08:00'));
  expect(of('0005.HK', ms('2026-11-20T11:59:59.999+08:00'))).toBe(before);
  const lunch = of('0700.HK', ms('2026-11-20T12:00+08:00'));
  expect(lunch.state).toBe('lunch_break');
  expect(of('0700.HK', ms('2026-11-20T11:59:59+08:00')).state).toBe('open');
});

test('test symbols are always open; other symbols without a venue are unknown', () => {
  const { of } = createMarkets();
  const saturday = ms('2026-11-21T10:00Z');
  expect(of('TEST:7203.T', saturday)).toBe(ALWAYS_OPEN);
  expect(of('AAPL', saturday)).toBe(NO_CALENDAR);
  expect(of('BTC/USD', saturday)).toBe(NO_CALENDAR);
});

test('rules set the venue of a symbol, or declare that its market never closes', () => {
  const rules = { ...NO_RULES, suffix: { '-USDT': 'ALWAYS', '.TYO': 'XTKS' } } as const;
  const { of, venueOf } = createMarkets({}, createVenueOf(rules));
  const saturday = ms('2026-11-21T10:00Z');
  expect(of('BTC-USDT', saturday)).toBe(ALWAYS_OPEN);
  expect([venueOf('BTC-USDT'), venueOf('7203.TYO'), venueOf('0700.HK')]).toEqual([
    ...['ALWAYS', 'XTKS', 'XHKG'],
  ]);
  expect(of('7203.TYO', saturday).state).toBe('closed');
});

test('an override applies at once', () => {
  const markets = createMarkets();
  const noon = ms('2026-11-20T10:30+08:00');
  expect(markets.at('XHKG', noon).state).toBe('open');
  markets.override({ XHKG: { '2026-11-20': 'closed' } });
  expect(markets.at('XHKG', noon)).toMatchObject({
    state: 'holiday',
    opensMs: ms('2026-11-23T09:30+08:00'),
  });
  expect(markets.at('XTKS', noon).state).toBe('lunch_break');
  markets.override({});
  expect(markets.at('XHKG', noon).state).toBe('open');
});
