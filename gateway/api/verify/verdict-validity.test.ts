import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TIERS } from '../../../domain/access/tiers.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { ReasonCode } from './reasons.ts';
import { type Case, judged, MARKETS, micros, NOW, USUAL } from './testing/verdict-cases.ts';

const iso = (ms: number) => new Date(ms).toISOString();
/** As many usual spreads as a comparison needs. */
const FEW = USUAL.filter((_, n) => n % 33 === 0);
const fault = (code: ReasonCode) => [{ code, detail: 'unavailable' }];
const FRIDAY = Date.parse('2026-11-20T00:00:00Z');
const SYMBOLS = [
  '7203.T',
  '0700.HK',
  'BHP.AX',
  'RELIANCE.NS',
  'USD/JPY',
  'TEST:X',
  'AAPL',
] as const;

/** A symbol at any moment of two weeks, with a pill of any age from any time of its day. */
const ANY_CASE = fc
  .record({
    symbol: fc.constantFrom(...SYMBOLS),
    nowMs: fc.integer({ min: FRIDAY, max: FRIDAY + 14 * 86_400_000 }),
    ageMs: fc.oneof(fc.integer({ min: -5_000, max: 20_000 }), fc.integer({ min: 0, max: 1e8 })),
    silentMs: fc.integer({ min: 0, max: 8_000 }),
    cadenceMs: fc.constantFrom(undefined, 200, 1_000, 30_000, 1_200_000),
    spreads: fc.constantFrom(FEW, FEW.slice(0, 7)),
    hasPill: fc.boolean(),
    faults: fc.constantFrom([], [], [], fault('view_behind'), fault('id_not_found')),
    newer: fc.constantFrom(undefined, undefined, undefined, { partition: 3, offset: 140 }),
    pill: fc.record({
      market_state: fc.constantFrom('open', 'closed', '開市'),
      gross_spread_percent: fc.constantFrom(0.12, 9),
      backfill: fc.constantFrom(false, false, false, true),
    }),
  })
  .map(({ nowMs, ageMs, silentMs, hasPill, pill, ...rest }): Case & { nowMs: number } => ({
    ...rest,
    nowMs,
    now: iso(nowMs),
    at: iso(nowMs - ageMs),
    receivedAt: iso(Math.min(nowMs, nowMs - ageMs + 7)),
    generatorAt: iso(nowMs - silentMs),
    pill: hasPill ? pill : null,
  }));

test('until `valid_until`, the verdict is the same at every moment, if no pill arrives', () => {
  const part = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(ANY_CASE, part, (one, share) => {
      const first = judged(one);
      const endMs = Math.ceil(first.validUntil / 1000) - 1;
      // The moments just after and just before, and one between.
      for (const ms of [one.nowMs + 1, one.nowMs + share * (endMs - one.nowMs), endMs]) {
        if (ms < one.nowMs || ms > endMs) continue;
        expect(judged({ ...one, now: iso(Math.floor(ms)) }).verdict).toBe(first.verdict);
      }
    }),
    { numRuns: 1_000 },
  );
});

test('a `verified` verdict changes at `valid_until`, if no pill arrives', () => {
  let verified = 0;
  fc.assert(
    fc.property(ANY_CASE, (any) => {
      const one: Case = { ...any, pill: {}, spreads: FEW, faults: [], newer: undefined };
      const { verdict, validUntil } = judged(one);
      if (verdict !== 'verified') return;
      verified += 1;
      expect(judged({ ...one, now: iso(validUntil / 1000 + 1) }).verdict).toBe('stale');
    }),
    { numRuns: 1_000 },
  );
  expect(verified).toBeGreaterThan(20);
});

test('a verdict holds for some time, and `ask_again_at` is never before its end', () => {
  fc.assert(
    fc.property(ANY_CASE, (one) => {
      const { verdict, validUntil, askAgainAt } = judged(one);
      expect(validUntil).toBeGreaterThanOrEqual(
        one.nowMs * 1000 + (verdict === 'verified' ? 0 : 1),
      );
      expect(askAgainAt).toBeGreaterThanOrEqual(validUntil);
    }),
    { numRuns: 1_000 },
  );
});

describe('when the next pill can change the verdict', () => {
  const wait = (one: Case) => (judged(one).validUntil - micros(NOW)) / 1_000_000;
  const old = { at: '2026-11-20T01:01:53.456Z', receivedAt: '2026-11-20T01:01:53.456Z' }; // 10 s
  test.each<[string, Case, number]>([
    [
      'the pill is due in a part of the cadence',
      { ...old, pill: { backfill: true }, cadenceMs: 30_000 },
      20,
    ],
    ['an overdue pill: as much time again', { ...old, cadenceMs: 1_000 }, 10],
    ['an hour without a pill: two minutes', { at: '2026-11-20T00:02:03Z', cadenceMs: 1_000 }, 120],
    ['no pill was ever received: two minutes', { pill: null, cadenceMs: undefined }, 120],
    ['21 pills too few: their time', { spreads: USUAL.slice(0, 9), cadenceMs: 5_007 }, 104.702],
    ['a part is unavailable: 10 s', { faults: fault('log_unavailable') }, 10],
    ['superseded: nothing can change it', { newer: { partition: 3, offset: 140 } }, 86_400],
    ['no calendar: nothing can change it', { symbol: 'AAPL' }, 86_400],
    ['an outlier: the next pill', { pill: { gross_spread_percent: 9 }, cadenceMs: 3_000 }, 2.555],
    ['an outlier goes stale', { pill: { gross_spread_percent: 9 }, cadenceMs: undefined }, 1],
  ])('%s', (_, one, s) => expect(wait(one)).toBe(s));

  test('too few pills while the market is closed: its opening', () => {
    const { verdict, validUntil } = judged({
      now: '2026-11-21T01:00:00Z',
      at: '2026-11-20T06:00:00Z',
      spreads: USUAL.slice(0, 9),
    });
    expect([verdict, formatTimestamp(validUntil)]).toEqual([
      'unknown',
      '2026-11-24T00:00:00.000000Z',
    ]);
  });
});

/**
 * Asks about a symbol all day, each time at the moment that the last verdict named.
 * @param cadenceMs the generator sends a pill so often while the market is open
 * @returns the number of calls, and how many were answered `verified`
 */
function playDay(
  symbol: string,
  cadenceMs: number,
  field: 'validUntil' | 'askAgainAt',
  { startMs = FRIDAY, ...change }: Case & { startMs?: number } = {},
) {
  let calls = 0;
  let verified = 0;
  for (let nowMs = startMs; nowMs < startMs + 86_400_000; calls += 1) {
    const { state, sinceMs = startMs } = MARKETS.of(symbol, nowMs);
    const sentMs = nowMs - ((nowMs - sinceMs) % cadenceMs);
    const at = iso(state === 'open' ? sentMs : sinceMs - 1_000);
    const one = { symbol, now: iso(nowMs), at, receivedAt: at, cadenceMs, spreads: FEW };
    const judgement = judged({ ...one, ...change });
    if (judgement.verdict === 'verified') verified += 1;
    nowMs = Math.max(nowMs + 1, Math.ceil(judgement[field] / 1000));
  }
  return { calls, verified };
}

describe("a day of asking fits Basic's calls", () => {
  const limit = TIERS.basic.callsPerDay!;
  const exchanges = SYMBOLS.slice(0, 4);
  const paced = SYMBOLS.slice(0, 6).flatMap((symbol) =>
    [200, 1_000, 6_000, 60_000, 1_200_000].map((cadenceMs) => [symbol, cadenceMs] as const),
  );

  test.each(paced)('%s, a pill every %i ms, at `ask_again_at`', (symbol, cadenceMs) => {
    const { calls, verified } = playDay(symbol, cadenceMs, 'askAgainAt');
    expect(calls).toBeLessThanOrEqual(limit);
    expect(verified).toBeGreaterThan(0);
  });

  test.each<[string, Case]>([
    ['the generator is silent', { at: '2026-11-19T06:00:00Z', receivedAt: '2026-11-19T06:00:00Z' }],
    ['the generator has never sent', { pill: null }],
    ['the history is too short', { spreads: FEW.slice(0, 5) }],
    ['the pill is superseded', { newer: { partition: 3, offset: 140 } }],
  ])('no usable pill, at `valid_until`: %s', (_, change) => {
    for (const symbol of SYMBOLS.slice(0, 6)) {
      const { calls, verified } = playDay(symbol, 60_000, 'validUntil', change);
      expect([verified, calls <= limit]).toEqual([0, true]);
    }
  });

  test.each<[string, Case]>([
    ['a part is unavailable all day', { faults: fault('log_unavailable') }],
    ['the market is halted', { pill: { market_state: 'halted' } }],
  ])('no usable pill, at `ask_again_at`: %s', (_, change) => {
    for (const symbol of SYMBOLS) {
      const { calls, verified } = playDay(symbol, 1_000, 'askAgainAt', change);
      expect([verified, calls <= limit]).toEqual([0, true]);
    }
  });

  test.each(exchanges)('%s at a weekend: a few', (symbol) => {
    const startMs = FRIDAY + 86_400_000;
    expect(playDay(symbol, 1_000, 'validUntil', { startMs }).calls).toBeLessThanOrEqual(2);
  });
});
