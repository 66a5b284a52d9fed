import { describe, expect, test } from 'vitest';
import { NO_RULES } from '../../../lib/calendar/venue-rules.ts';
import { verdictBody } from './body.ts';
import { type Case, factsOf, judged, micros, NOW } from './testing/facts.ts';
import { judge } from './verdict.ts';

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
      'Tokyo, the evening',
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
      'a typhoon by override',
      {
        now: '2026-11-20T02:00:00Z',
        symbol: '0700.HK',
        overrides: { XHKG: { '2026-11-20': 'closed' } },
      },
      'XHKG: holiday until 2026-11-23T01:30Z',
      '2026-11-23T01:30:00Z',
    ],
  ])('%s is not open, and it says until when', (_, one, detail, opens) => {
    const { verdict, reasons, validUntil } = judged({ ...one, pill: { market_state: 'closed' } });
    expect(verdict).toBe('stale');
    expect(reasons[0]).toEqual({ code: 'market_not_open', detail });
    expect(validUntil).toBe(micros(opens));
  });

  test('a half day: open until its early close, and the verdict ends there', () => {
    const now = '2026-12-24T03:59:58Z';
    const facts = factsOf({ now, symbol: '0700.HK', cadenceMs: 60_000 });
    const judgement = judge(facts);
    expect(judgement.verdict).toBe('verified');
    expect(judgement.validUntil).toBe(micros('2026-12-24T04:00:00Z'));
    expect(verdictBody({ facts, judgement }, '').market.half_day).toBe(true);
  });

  test('currencies trade at night, test symbols and markets of ALWAYS at weekends', () => {
    expect(at('2026-11-19T18:00:00Z', { symbol: 'USD/JPY' }).verdict).toBe('verified');
    const saturday = '2026-11-21T10:00:00Z';
    expect(at(saturday, { symbol: 'TEST:X' }).verdict).toBe('verified');
    expect(at(saturday, { symbol: 'BTC-USDT' }).codes).toContain('venue_unknown');
    const rules = { ...NO_RULES, suffix: { '-USDT': 'ALWAYS' as const } };
    expect(at(saturday, { symbol: 'BTC-USDT', rules }).verdict).toBe('verified');
  });

  test('around an opening or a close a second is forgiven, not two', () => {
    const close = (at: string) => judged({ now: '2026-11-20T06:29:59Z', at }).codes;
    expect(close('2026-11-20T06:29:58.500Z')).toEqual([]);
    const afterOpen = (at: string) => judged({ now: '2026-11-20T00:00:01Z', at }).codes;
    expect(afterOpen('2026-11-19T23:59:59.200Z')).toEqual([]);
    expect(afterOpen('2026-11-19T23:59:58.500Z')).toEqual([
      ...(['pill_outside_session', 'market_state_disagrees'] as const),
    ]);
  });
});

describe('ages', () => {
  test('a slow symbol may be as old as five of its cadences, a quick one 5 s', () => {
    const at = '2026-11-20T01:00:00.000Z'; // 123 s
    expect(judged({ at, cadenceMs: 30_000 }).verdict).toBe('verified');
    expect(judged({ at, cadenceMs: 20_000 }).codes).toEqual(['pill_too_old']);
    expect(judged({ at, cadenceMs: undefined }).codes).toEqual(['pill_too_old']);
  });

  test('out of a session the generator may rest', () => {
    const now = '2026-11-20T02:45:00Z';
    expect(judged({ now, heardAt: '2026-11-20T02:30:00Z' }).codes).toEqual([
      ...(['market_not_open', 'pill_outside_session', 'market_state_disagrees'] as const),
    ]);
  });

  test('a verdict holds no longer than the generator is known to live', () => {
    const { verdict, validUntil } = judged({ heardAt: '2026-11-20T01:01:59.456Z' });
    expect(verdict).toBe('verified');
    expect(validUntil).toBe(micros('2026-11-20T01:02:04.456Z'));
    // Neither is it over before it was told: half a millisecond is rounded away.
    const last = judged({ heardAt: '2026-11-20T01:01:58.456Z' });
    expect([last.verdict, last.validUntil]).toEqual(['verified', micros(NOW)]);
  });

  test('when to ask again: by the pace of the symbol, at most a minute, and in a minute of none', () => {
    const wait = (one: Case) => (judged(one).validUntil - micros(NOW)) / 1_000_000;
    const old = { at: '2026-11-20T00:10:00Z' };
    expect(wait({ ...old, cadenceMs: 200 })).toBe(1);
    expect(wait({ ...old, cadenceMs: 8_000 })).toBe(8);
    expect(wait({ ...old, cadenceMs: 3_600_000 / 5, heardAt: null })).toBe(60);
    expect(wait({ pill: null, cadenceMs: undefined })).toBe(60);
  });
});
