import { describe, expect, test } from 'vitest';
import type { Pill } from '../../../../sdk/types.ts';
import { isCalm } from './calm.ts';
import { createClock } from './clock.ts';
import { createMarket, type Row, SPREADS_MAX, SYMBOLS_MAX, spreadsOf } from './market.ts';
import { arrange, nextOrder, type Sort } from './order.ts';
import { createPace } from './pace.ts';
import { microsOf } from './time.ts';

function pill(fields: Partial<Pill> & { readonly offset?: number } = {}): Pill {
  const { offset = 1, ...rest } = fields;
  return {
    ...{ cursor: `0-${offset}`, prev: null, id: 'p', symbol: 'A.T', market_state: 'open' },
    ...{ timestamp: '2026-11-20T01:02:03.000004Z', received_at: '2026-11-20T01:02:03.000005Z' },
    ...{ gross_spread_percent: 0.1, confidence: 50 },
    ...rest,
  };
}

describe('market', () => {
  test('the newest pill of a symbol, and its change against the one before', () => {
    const market = createMarket();
    expect(market.take(pill({ offset: 1, gross_spread_percent: 0.1 }))).toBe(true);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.1, change: undefined, count: 1 });
    expect(market.take(pill({ offset: 2, gross_spread_percent: 0.4 }))).toBe(true);
    expect(market.rows.get('A.T')!.change).toBeCloseTo(0.3);
  });

  test.each([
    ['late', pill({ offset: 9, late: true, gross_spread_percent: 7 })],
    ['that came before', pill({ offset: 4, gross_spread_percent: 7 })],
    ['that was shown already', pill({ offset: 5, gross_spread_percent: 7 })],
  ])('a pill %s changes nothing', (_what, other) => {
    const market = createMarket();
    market.take(pill({ offset: 5 }));
    expect(market.take(other)).toBe(false);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.1, count: 1 });
  });

  test('a snapshot fills in what was missed; one of another log begins anew', () => {
    const market = createMarket();
    market.show(pill({ offset: 5 }), 'e1');
    market.take(pill({ symbol: 'B.T', offset: 6 }));
    market.show(pill({ offset: 8, gross_spread_percent: 0.2 }), 'e1');
    expect(market.rows.size).toBe(2);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.2, count: 2 });
    market.show(pill({ offset: 1, gross_spread_percent: 0.3 }), 'e2');
    expect([...market.rows.keys()]).toEqual(['A.T']);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.3, count: 1 });
  });

  test('memory is bounded: so many spreads of a symbol, so many symbols', () => {
    const market = createMarket();
    for (let n = 1; n <= SPREADS_MAX + 5; n += 1) {
      market.take(pill({ offset: n, gross_spread_percent: n }));
    }
    const spreads = spreadsOf(market.rows.get('A.T')!);
    expect(spreads).toHaveLength(SPREADS_MAX);
    expect([spreads[0], spreads.at(-1)]).toEqual([6, SPREADS_MAX + 5]);
    for (let n = 1; n < SYMBOLS_MAX; n += 1) market.take(pill({ symbol: `S${n}.T` }));
    expect(market.isFull).toBe(false);
    expect(market.take(pill({ symbol: 'ONE.MORE' }))).toBe(false);
    expect(market.isFull).toBe(true);
    expect(market.rows.size).toBe(SYMBOLS_MAX);
    expect(market.take(pill({ offset: 999 }))).toBe(true);
  });

  test('why it is quiet goes with the next pill', () => {
    const market = createMarket();
    market.take(pill());
    market.quiet('A.T', 'lunch break');
    expect(market.rows.get('A.T')!.quiet).toBe('lunch break');
    market.take(pill({ offset: 2 }));
    expect(market.rows.get('A.T')!.quiet).toBeUndefined();
  });
});

describe('order', () => {
  const row = (symbol: string, spread: number, change: number | undefined, atMs: number): Row => ({
    ...{ symbol, spread, change, atMs, confidence: spread, offset: 0, count: 1, quiet: undefined },
    ...{ state: symbol < 'B' ? 'open' : 'closed', ring: new Float64Array(SPREADS_MAX) },
  });
  const rows = [row('B.T', 2, -1, 30), row('A.T', 1, undefined, 10), row('C.T', 3, 1, 20)];
  const named = (by: Sort, isDescending: boolean, filter = '') =>
    arrange(rows, { by, isDescending }, filter).map(({ symbol }) => symbol.slice(0, 1));

  test.each([
    ['symbol', false, 'ABC'],
    ['symbol', true, 'CBA'],
    ['spread', true, 'CBA'],
    ['change', true, 'CAB'],
    ['confidence', false, 'ABC'],
    ['state', false, 'BCA'],
    ['age', false, 'BCA'],
    ['age', true, 'ACB'],
  ] as const)('by %s, descending %s: %s', (by, isDescending, expected) => {
    expect(named(by, isDescending).join('')).toBe(expected);
  });

  test.each([
    ['', 'ABC'],
    [' b.t ', 'B'],
    ['OPEN', 'A'],
    ['.t', 'ABC'],
    ['x', ''],
  ])('filter %j: %j', (filter, expected) => {
    expect(named('symbol', false, filter).join('')).toBe(expected);
  });

  test('a column again turns round; numbers begin with the largest', () => {
    const first = nextOrder({ by: 'symbol', isDescending: false }, 'spread');
    expect(first).toEqual({ by: 'spread', isDescending: true });
    expect(nextOrder(first, 'spread')).toEqual({ by: 'spread', isDescending: false });
    expect(nextOrder(first, 'age')).toEqual({ by: 'age', isDescending: false });
  });
});

describe('clock and pace', () => {
  test('the fastest frame is believed; a clock that was set is believed after a minute', () => {
    const clock = createClock();
    expect(clock.now(0)).toBeUndefined();
    clock.note(1_000, 100);
    clock.note(1_940, 1_100);
    expect(clock.now(2_000)).toBe(2_900);
    clock.note(32_000, 32_100);
    expect(clock.now(32_100)).toBe(33_000);
    clock.note(64_000, 64_100);
    expect(clock.now(64_100)).toBe(64_000);
  });

  test('pills of the last five whole seconds, the running one does not count', () => {
    const pace = createPace();
    for (let ms = 10_000; ms < 15_000; ms += 100) pace.note(ms, ms % 200);
    expect(pace.perS(15_000)).toBe(10);
    pace.note(15_001, undefined);
    expect(pace.perS(15_002)).toBe(10);
    expect(pace.perS(17_000)).toBeCloseTo(31 / 5);
    expect(pace.perS(60_000)).toBe(0);
  });

  test('the median latency is of the last 15 s; where none is known it is none', () => {
    const pace = createPace();
    expect(pace.medianMs(0)).toBeUndefined();
    for (const [ms, latencyMs] of [
      [0, 900],
      [1, 800],
      [10_000, 5],
      [10_001, 7],
    ] as const) {
      pace.note(ms, latencyMs);
    }
    pace.note(10_002, undefined);
    expect(pace.medianMs(10_002)).toBe(800);
    expect(pace.medianMs(16_000)).toBe(7);
    expect(pace.medianMs(60_000)).toBeUndefined();
  });

  test('a rate that swings about the limit is told calm or not once', () => {
    let calm = true;
    const told = [10, 50, 51, 49, 51, 36, 35, 49, 51].map((perS) => {
      calm = isCalm(calm, perS);
      return calm ? 'calm' : 'busy';
    });
    expect(told.join(' ')).toBe('calm calm busy busy busy busy calm calm busy');
  });

  test('microseconds are kept', () => {
    const ms = Date.parse('2026-11-20T01:02:03.004Z');
    expect(microsOf('2026-11-20T01:02:03.004567Z')).toBe(ms * 1_000 + 567);
  });
});
