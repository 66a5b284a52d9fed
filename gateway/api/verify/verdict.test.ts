import { describe, expect, test } from 'vitest';
import { REASON_LIST, type ReasonCode } from './reasons.ts';
import { VERDICT_EXAMPLE } from './schemas.ts';
import { type Case, factsOf, judged, USUAL } from './testing/verdict-cases.ts';
import { judge } from './verdict.ts';
import { verdictBody } from './verdict-body.ts';

test('the example of the API reference', () => {
  const facts = factsOf({});
  const body = verdictBody({ facts, judgement: judge(facts) }, 'k7f3:3-132');
  const { market, spread, position: _, ...rest } = VERDICT_EXAMPLE;
  const { value, n, window, median } = spread!;
  expect(body).toMatchObject({
    ...rest,
    market: { ...market, calendar_until: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) },
    spread: { value, n, window, median: expect.closeTo(median, 6) },
  });
  expect(Object.keys(body.pill!)).toHaveLength(8);
});

test('the example "lunch" of the contract', () => {
  const facts = factsOf({
    now: '2026-11-20T02:45:00Z',
    at: '2026-11-20T02:30:00Z',
    receivedAt: '2026-11-20T02:30:00.008Z',
    generatorAt: '2026-11-20T02:30:00.008Z',
    pill: { id: 'p-77', gross_spread_percent: 0.13 },
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
      since: '2026-11-20T02:30:00.000000Z',
      expected_back: '2026-11-20T03:30:00.000000Z',
    },
  });
});

const fault = (code: ReasonCode) => [{ code, detail: 'unavailable' }];

/** Every reason, by the one change to the example "good" that causes it. */
const ALONE: Readonly<Record<ReasonCode, Case>> = {
  no_pill: { pill: null },
  id_not_found: { pill: null, faults: fault('id_not_found') },
  search_incomplete: { pill: null, faults: fault('search_incomplete') },
  log_unavailable: { faults: fault('log_unavailable') },
  view_behind: { faults: fault('view_behind') },
  venue_unknown: { symbol: 'AAPL' },
  calendar_ended: { now: '2099-01-05T01:00:00Z' },
  pill_ahead: { at: '2026-11-20T01:02:05.000Z' },
  spread_history_unavailable: { spreads: USUAL.slice(0, 29), isSpreadWhole: false },
  spread_history_too_short: { spreads: USUAL.slice(0, 29) },
  superseded: { newer: { partition: 3, offset: 140 } },
  market_not_open: {
    now: '2026-11-20T02:30:00.400Z',
    at: '2026-11-20T02:29:59.900Z',
    generatorAt: '2026-11-20T02:30:00.300Z',
  },
  pill_outside_session: {
    now: '2026-11-20T00:00:01.000Z',
    at: '2026-11-19T23:59:58.900Z',
    pill: { market_state: 'pre-open' },
  },
  pill_too_old: { at: '2026-11-20T01:01:58.400Z' },
  pill_backfill: { pill: { backfill: true } },
  generator_silent: { generatorAt: '2026-11-20T01:01:58.400Z' },
  market_state_disagrees: { pill: { market_state: 'closed' } },
  spread_outlier: { pill: { gross_spread_percent: 0.9 } },
};

const REASON_ROWS = REASON_LIST.map(({ code, verdict }) => [code, verdict] as const);
test.each(REASON_ROWS)('%s alone: its verdict, never usable', (code, verdict) => {
  const judgement = judged(ALONE[code]);
  expect([judgement.codes, judgement.verdict]).toEqual([[code], verdict]);
});

test('a symbol without pills: the one that was probably meant', () => {
  const { reasons } = judge({ ...factsOf({ pill: null, symbol: '7203' }), meant: '7203.T' });
  const detail = 'No pill of 7203 was ever received. Perhaps you mean 7203.T.';
  expect(reasons).toEqual([{ code: 'no_pill', detail }]);
});

test('a spread at the limit is an outlier', () => {
  // The median is 0 and the MAD 1, so a value v has the score 0.6745 v.
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
        faults: fault('view_behind'),
        at: '2026-11-20T01:00:00Z',
        spreads: USUAL,
        pill: { market_state: 'lunch', gross_spread_percent: 9 },
        generatorAt: null,
      },
      'unknown',
      [
        'view_behind',
        'pill_too_old',
        'generator_silent',
        'market_state_disagrees',
        'spread_outlier',
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
      'a newer pill: other reasons do not matter',
      { newer: { partition: 3, offset: 140 }, at: '2026-11-20T00:30:00Z' },
      'stale',
      ['superseded'],
    ],
    [
      'no pill of the symbol, and the log is unavailable',
      { pill: null, faults: fault('log_unavailable') },
      'unknown',
      ['log_unavailable'],
    ],
  ])('%s', (_, one, verdict, codes) => {
    const judgement = judged(one);
    expect([judgement.verdict, judgement.codes]).toEqual([verdict, codes]);
  });
});
