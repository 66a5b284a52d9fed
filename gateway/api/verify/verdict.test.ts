import { describe, expect, test } from 'vitest';
import { verdictBody } from './body.ts';
import { REASONS, type ReasonCode } from './reasons.ts';
import { type Case, factsOf, judged, USUAL } from './testing/facts.ts';
import { judge } from './verdict.ts';

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

test('a spread is an outlier from the limit on', () => {
  // The median is 0, the MAD 1: a value is 0.6745 deviations for each 1.
  const spreads = [
    ...Array.from({ length: 15 }, () => -1),
    0,
    ...Array.from({ length: 15 }, () => 1),
  ];
  const at = (z: number) => judged({ spreads, pill: { gross_spread_percent: z / 0.6745 } });
  expect(at(3.999).codes).toEqual([]);
  expect(at(4).codes).toEqual(['spread_outlier']);
  expect(at(-4).codes).toEqual(['spread_outlier']);
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
