import { describe, expect, test } from 'vitest';
import type { Overrides } from '../../../lib/calendar/overrides.ts';
import { createVenueOf, NO_RULES } from '../../../lib/calendar/venue-rules.ts';
import { lateAfterMs } from '../../../lib/signal/cadence.ts';
import { generatorState } from '../../../lib/signal/generator.ts';
import { createMarkets } from '../../../lib/signal/markets.ts';
import { judgeSilence } from '../../../lib/signal/silence.ts';
import { verdictBody } from './body.ts';
import { marketFacts } from './market.ts';
import { REASONS, type ReasonCode } from './reasons.ts';
import { spreadFigures } from './spread.ts';
import { type Facts, judge, type WeighedPill } from './verdict.ts';

const micros = (time: string) => Date.parse(time) * 1000;

interface Case {
  readonly now?: string;
  readonly pill?: Partial<Omit<WeighedPill, 'timestamp' | 'received_at'>> | null;
  /** Of the pill; 0.452 s before now by default. */
  readonly at?: string;
  readonly receivedAt?: string;
  readonly symbol?: string;
  /** Median ms between pills. */
  readonly cadenceMs?: number | undefined;
  /** When the generator last sent anything. */
  readonly heardAt?: string | null;
  readonly spreads?: readonly number[];
  readonly isSpreadWhole?: boolean;
  readonly faults?: Facts['faults'];
  readonly newer?: Facts['newer'];
  readonly overrides?: Overrides;
  readonly rules?: Parameters<typeof createVenueOf>[0];
}

/** A thousand spreads around 0.118. */
const USUAL = Array.from({ length: 1_000 }, (_, n) => 0.07 + (n / 999) * 0.096);
const NOW = '2026-11-20T01:02:03.456Z';

/** The good answer of the contract, changed in one thing. */
function factsOf(one: Case): Facts {
  const now = micros(one.now ?? NOW);
  const symbol = one.symbol ?? '7203.T';
  const timestamp = one.at === undefined ? now - 452_000 : micros(one.at);
  const received_at = one.receivedAt === undefined ? timestamp + 7_000 : micros(one.receivedAt);
  const pill: WeighedPill | undefined =
    one.pill === null
      ? undefined
      : {
          ...{ partition: 3, offset: 132, id: 'p-10', symbol, timestamp, received_at },
          ...{ gross_spread_percent: 0.1261, market_state: 'open', confidence: 0.88 },
          ...{ backfill: false, ...one.pill },
        };
  const markets = createMarkets(one.overrides, createVenueOf(one.rules ?? NO_RULES));
  const market = marketFacts(markets, symbol, now / 1000, pill && pill.timestamp / 1000);
  const cadenceMs = 'cadenceMs' in one ? one.cadenceMs : 980;
  const maxAgeMs = lateAfterMs(cadenceMs);
  const heardAt = one.heardAt === undefined ? now - 36_000 : micros(one.heardAt ?? '');
  const values = Float64Array.from(one.spreads ?? USUAL);
  return {
    ...{ now, symbol, pill, market, cadenceMs, maxAgeMs },
    faults: one.faults ?? [],
    newer: one.newer,
    generator: generatorState(
      {
        lastReceivedAt: one.heardAt === null ? undefined : heardAt,
        lateAfterMs: 5_000,
        isInSession: true,
      },
      now,
    ),
    quiet: judgeSilence({
      ...{ lastAtMs: pill && received_at / 1000, lateAfterMs: maxAgeMs, market: market.now },
      ...{ hearingSinceMs: undefined, nowMs: now / 1000 },
    }).quiet,
    spread:
      pill === undefined || values.length === 0
        ? undefined
        : spreadFigures(values, pill.gross_spread_percent),
    isSpreadWhole: one.isSpreadWhole ?? true,
  };
}

const judged = (one: Case) => {
  const judgement = judge(factsOf(one));
  return { ...judgement, codes: judgement.reasons.map(({ code }) => code) };
};

test('the good answer of the contract', () => {
  const facts = factsOf({});
  const body = verdictBody({ facts, judgement: judge(facts) }, 'k7f3:3-132');
  expect(body).toMatchObject({
    subject: { symbol: '7203.T' },
    checked_at: '2026-11-20T01:02:03.456000Z',
    verdict: 'verified',
    usable: true,
    reasons: [],
    valid_until: '2026-11-20T01:02:08.004000Z',
    pill: {
      cursor: '3-132',
      id: 'p-10',
      timestamp: '2026-11-20T01:02:03.004000Z',
      symbol: '7203.T',
      gross_spread_percent: 0.1261,
      market_state: 'open',
      confidence: 0.88,
      received_at: '2026-11-20T01:02:03.011000Z',
    },
    age_ms: 452,
    max_age_ms: 5000,
    market: {
      venue: 'XTKS',
      timezone: 'Asia/Tokyo',
      session_date: '2026-11-20',
      now: 'open',
      at_pill: 'open',
      half_day: false,
      next: { at: '2026-11-20T02:30:00Z', state: 'lunch_break' },
      basis: 'calendar',
      calendar_until: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    },
    agreement: { pill: 'open', calendar: 'open', agrees: true },
    generator: {
      state: 'alive',
      last_received_at: '2026-11-20T01:02:03.420000Z',
      silent_ms: 36,
      late_after_ms: 5000,
    },
    spread: { value: 0.1261, n: 1000, window: 'last 1000 pills', median: expect.closeTo(0.118, 6) },
    quiet: null,
  });
  expect(Object.keys(body.pill!)).toHaveLength(8);
});

test('the lunch of the contract', () => {
  const facts = factsOf({
    ...{ now: '2026-11-20T02:45:00Z', at: '2026-11-20T02:30:00Z' },
    receivedAt: '2026-11-20T02:30:00.008Z',
    ...{ heardAt: '2026-11-20T02:30:00.008Z', pill: { id: 'p-77', gross_spread_percent: 0.13 } },
  });
  expect(verdictBody({ facts, judgement: judge(facts) }, 'k7f3:')).toMatchObject({
    verdict: 'stale',
    usable: false,
    reasons: [
      { code: 'market_not_open', detail: 'XTKS: lunch break until 03:30Z' },
      { code: 'pill_too_old', detail: '900 s old, limit 5 s' },
    ],
    valid_until: '2026-11-20T03:30:00.000000Z',
    age_ms: 900_000,
    max_age_ms: 5000,
    quiet: {
      reason: 'lunch_break',
      since: '2026-11-20T02:30:00Z',
      expected_back: '2026-11-20T03:30:00Z',
    },
  });
});

const AWAY = (code: ReasonCode) => [{ code, detail: 'away' }];

/** Every reason, by the one thing that is not as in the good answer. */
const ALONE: Readonly<Record<ReasonCode, Case>> = {
  no_pill: { pill: null },
  id_not_found: { pill: null, faults: AWAY('id_not_found') },
  search_incomplete: { pill: null, faults: AWAY('search_incomplete') },
  log_unavailable: { faults: AWAY('log_unavailable') },
  view_behind: { faults: AWAY('view_behind') },
  venue_unknown: { symbol: 'AAPL' },
  calendar_ended: { now: '2099-01-05T01:00:00Z' },
  pill_ahead: { at: '2026-11-20T01:02:05.000Z' },
  spread_history_unavailable: { spreads: USUAL.slice(0, 29), isSpreadWhole: false },
  spread_history_short: { spreads: USUAL.slice(0, 29) },
  superseded: { newer: { partition: 3, offset: 140 } },
  market_not_open: {
    ...{ now: '2026-11-20T02:30:00.400Z', at: '2026-11-20T02:29:59.900Z' },
    heardAt: '2026-11-20T02:30:00.300Z',
  },
  pill_outside_session: {
    ...{ now: '2026-11-20T00:00:01.000Z', at: '2026-11-19T23:59:58.900Z' },
    ...{ pill: { market_state: 'pre-open' } },
  },
  pill_too_old: { at: '2026-11-20T01:01:58.400Z' },
  pill_backfill: { pill: { backfill: true } },
  generator_silent: { heardAt: '2026-11-20T01:01:58.400Z' },
  market_state_disagrees: { pill: { market_state: 'closed' } },
  spread_outlier: { pill: { gross_spread_percent: 0.9 } },
};

test.each(Object.keys(REASONS) as ReasonCode[])('%s alone: its verdict, never usable', (code) => {
  const { verdict, codes } = judged(ALONE[code]);
  expect(codes).toEqual([code]);
  expect(verdict).toBe(REASONS[code].verdict);
});

describe('the first verdict that applies, and all reasons', () => {
  test.each<[string, Case, string, ReasonCode[]]>([
    [
      'everything at once',
      {
        ...{ faults: AWAY('view_behind'), at: '2026-11-20T01:00:00Z', spreads: USUAL },
        ...{ pill: { market_state: 'lunch', gross_spread_percent: 9 }, heardAt: null },
      },
      'unknown',
      [
        ...(['view_behind', 'pill_too_old', 'generator_silent'] as const),
        ...(['market_state_disagrees', 'spread_outlier'] as const),
      ],
    ],
    [
      'stale before an outlier',
      { at: '2026-11-20T01:00:00Z', pill: { gross_spread_percent: 9 } },
      'stale',
      ['pill_too_old', 'spread_outlier'],
    ],
    [
      'disagrees before an outlier',
      { pill: { market_state: 'HALTED', gross_spread_percent: -9 } },
      'disagrees',
      ['market_state_disagrees', 'spread_outlier'],
    ],
    [
      'a newer pill: what else there is against the old one is beside the point',
      { newer: { partition: 3, offset: 140 }, at: '2026-11-20T00:30:00Z' },
      'stale',
      ['superseded'],
    ],
    [
      'nothing of the symbol, and the log away',
      { pill: null, faults: AWAY('log_unavailable') },
      'unknown',
      ['log_unavailable'],
    ],
  ])('%s', (_, one, verdict, codes) => {
    const told = judged(one);
    expect([told.verdict, told.codes]).toEqual([verdict, codes]);
  });
});

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
