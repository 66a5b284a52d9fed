import { describe, expect, test } from 'vitest';
import { NO_RULES } from '../../../domain/market/calendars/venue-rules.ts';
import { type Case, factsOf, judged, micros, NOW } from './testing/verdict-cases.ts';
import { judge } from './verdict.ts';
import { verdictBody } from './verdict-body.ts';

describe('markets', () => {
  const at = (now: string, more: Case = {}) => judged({ now, ...more });
  test.each<[string, Case & { now: string }, string, string]>([
    [
      'Tokyo, a holiday',
      { now: '2026-11-23T01:00:00Z' },
      'XTKS: holiday until 2026-11-24T00:00Z',
      '2026-11-24T00:00:00Z',
    ],
    [
      'Tokyo, a Saturday',
      { now: '2026-11-21T01:00:00Z' },
      'XTKS: closed until 2026-11-24T00:00Z',
      '2026-11-24T00:00:00Z',
    ],
    [
      'Tokyo, in the evening',
      { now: '2026-11-18T12:00:00.000Z' },
      'XTKS: closed until 2026-11-19T00:00Z',
      '2026-11-19T00:00:00Z',
    ],
    [
      'Hong Kong, after a half day',
      { now: '2026-12-24T05:30:00Z', symbol: '0700.HK' },
      'XHKG: closed until 2026-12-28T01:30Z',
      '2026-12-28T01:30:00Z',
    ],
    [
      'currencies, a Sunday',
      { now: '2026-11-22T12:00:00Z', symbol: 'USD/JPY' },
      'FX: closed until 22:00Z',
      '2026-11-22T22:00:00Z',
    ],
    [
      'a typhoon, by override',
      {
        now: '2026-11-20T02:00:00Z',
        symbol: '0700.HK',
        overrides: { XHKG: { '2026-11-20': 'closed' } },
      },
      'XHKG: holiday until 2026-11-23T01:30Z',
      '2026-11-23T01:30:00Z',
    ],
  ])('%s: not open, and until when', (_, one, detail, opens) => {
    const { verdict, reasons, validUntil } = judged({ ...one, pill: { market_state: 'closed' } });
    expect(verdict).toBe('stale');
    expect(reasons[0]).toEqual({ code: 'market_not_open', detail });
    expect(validUntil).toBe(micros(opens));
  });

  test('a half day: the verdict is valid until the early close', () => {
    const now = '2026-12-24T03:59:58Z';
    const facts = factsOf({ now, symbol: '0700.HK', cadenceMs: 60_000 });
    const judgement = judge(facts);
    expect(judgement.verdict).toBe('verified');
    expect(judgement.validUntil).toBe(micros('2026-12-24T04:00:00Z'));
    expect(verdictBody({ facts, judgement }, '').market.half_day).toBe(true);
  });

  test('currencies trade at night, test symbols and ALWAYS markets at weekends', () => {
    expect(at('2026-11-19T18:00:00Z', { symbol: 'USD/JPY' }).verdict).toBe('verified');
    const saturday = '2026-11-21T10:00:00Z';
    expect(at(saturday, { symbol: 'TEST:X' }).verdict).toBe('verified');
    expect(at(saturday, { symbol: 'BTC-USDT' }).codes).toContain('venue_unknown');
    const rules = { ...NO_RULES, suffix: { '-USDT': 'ALWAYS' as const } };
    expect(at(saturday, { symbol: 'BTC-USDT', rules }).verdict).toBe('verified');
  });

  test('around an opening or a close, one second is tolerated, two are not', () => {
    const close = (at: string) => judged({ now: '2026-11-20T06:29:59Z', at }).codes;
    expect(close('2026-11-20T06:29:58.500Z')).toEqual([]);
    const afterOpen = (at: string) => judged({ now: '2026-11-20T00:00:01Z', at }).codes;
    expect(afterOpen('2026-11-19T23:59:59.200Z')).toEqual([]);
    expect(afterOpen('2026-11-19T23:59:58.500Z')).toEqual([
      'pill_outside_session',
      'market_state_disagrees',
    ]);
  });
});

describe('ages', () => {
  test('a pill may be five cadences of its symbol old, and at least 5 s', () => {
    const at = '2026-11-20T01:00:00.000Z'; // 123 s
    expect(judged({ at, cadenceMs: 30_000 }).verdict).toBe('verified');
    expect(judged({ at, cadenceMs: 20_000 }).codes).toEqual(['pill_too_old']);
    expect(judged({ at, cadenceMs: undefined }).codes).toEqual(['pill_too_old']);
  });

  test('outside a session the generator may be silent', () => {
    const now = '2026-11-20T02:45:00Z';
    expect(judged({ now, generatorAt: '2026-11-20T02:30:00Z' }).codes).toEqual([
      'market_not_open',
      'pill_outside_session',
      'market_state_disagrees',
    ]);
  });

  test('a verdict is valid no longer than the generator is known to be alive', () => {
    const { verdict, validUntil } = judged({ generatorAt: '2026-11-20T01:01:59.456Z' });
    expect(verdict).toBe('verified');
    expect(validUntil).toBe(micros('2026-11-20T01:02:04.456Z'));
    // The verdict does not expire before `now` either: rounding takes away up to half a
    // millisecond.
    const last = judged({ generatorAt: '2026-11-20T01:01:58.456Z' });
    expect([last.verdict, last.validUntil]).toEqual(['verified', micros(NOW)]);
  });
});
