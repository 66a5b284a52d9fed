import { describe, expect, test } from 'vitest';
import type { Pill } from '../../../../sdk/exports.ts';
import { closedVenues } from './closed-venues.ts';
import { nextOrder, type Sort, sortRows } from './order.ts';
import { createPillRate, isCalm } from './pill-rate.ts';
import { createClock, microsOf } from './platform-clock.ts';
import { createMarket, type Row, SPREADS_MAX, SYMBOLS_MAX, type Venue } from './symbol-rows.ts';

function pill(fields: Partial<Pill> & { readonly offset?: number } = {}): Pill {
  const { offset = 1, ...rest } = fields;
  return {
    cursor: `0-${offset}`,
    prev: null,
    id: 'p',
    symbol: 'A.T',
    market_state: 'open',
    timestamp: '2026-11-20T01:02:03.000004Z',
    received_at: '2026-11-20T01:02:03.000005Z',
    gross_spread_percent: 0.1,
    confidence: 50,
    ...rest,
  };
}

describe('market', () => {
  test('the newest pill of a symbol, and its change from the previous one', () => {
    const market = createMarket();
    expect(market.addPill(pill({ offset: 1, gross_spread_percent: 0.1 }))).toBe(true);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.1, change: undefined, count: 1 });
    expect(market.addPill(pill({ offset: 2, gross_spread_percent: 0.4 }))).toBe(true);
    expect(market.rows.get('A.T')!.change).toBeCloseTo(0.3);
  });

  test.each([
    ['that is late', pill({ offset: 9, late: true, gross_spread_percent: 7 })],
    ['with a lower offset', pill({ offset: 4, gross_spread_percent: 7 })],
    ['with the same offset', pill({ offset: 5, gross_spread_percent: 7 })],
  ])('a pill %s changes nothing', (_what, other) => {
    const market = createMarket();
    market.addPill(pill({ offset: 5 }));
    expect(market.addPill(other)).toBe(false);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.1, count: 1 });
  });

  test('a snapshot adds missed pills; a snapshot of another log clears the market', () => {
    const market = createMarket();
    market.addSnapshotPill(pill({ offset: 5 }), 'e1');
    market.addPill(pill({ symbol: 'B.T', offset: 6 }));
    market.addSnapshotPill(pill({ offset: 8, gross_spread_percent: 0.2 }), 'e1');
    expect(market.rows.size).toBe(2);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.2, count: 2 });
    market.addSnapshotPill(pill({ offset: 1, gross_spread_percent: 0.3 }), 'e2');
    expect([...market.rows.keys()]).toEqual(['A.T']);
    expect(market.rows.get('A.T')).toMatchObject({ spread: 0.3, count: 1 });
  });

  test('memory is bounded: spreads per symbol, and symbols', () => {
    const market = createMarket();
    for (let n = 1; n <= SPREADS_MAX + 5; n += 1) {
      market.addPill(pill({ offset: n, gross_spread_percent: n }));
    }
    const { spreads } = market.rows.get('A.T')!;
    expect(spreads).toHaveLength(SPREADS_MAX);
    expect([spreads[0], spreads.at(-1)]).toEqual([6, SPREADS_MAX + 5]);
    for (let n = 1; n < SYMBOLS_MAX; n += 1) market.addPill(pill({ symbol: `S${n}.T` }));
    expect(market.isFull).toBe(false);
    expect(market.addPill(pill({ symbol: 'ONE.MORE' }))).toBe(false);
    expect(market.isFull).toBe(true);
    expect(market.rows.size).toBe(SYMBOLS_MAX);
    expect(market.addPill(pill({ offset: 999 }))).toBe(true);
  });

  test('history fills the spreads before the first pill of the stream, and its change', () => {
    const market = createMarket();
    const at = (time: string) => Date.parse(time) * 1_000;
    market.addPill(pill({ gross_spread_percent: 0.4 }));
    expect([...market.unread]).toEqual(['A.T']);
    market.addFacts('A.T', {
      ...{ name: 'Alpha', venue: 'XTKS' },
      spreads: [
        [at('2026-11-20T01:02:01Z'), 0.1],
        [at('2026-11-20T01:02:02Z'), 0.3],
        [at('2026-11-20T01:02:03Z') + 5, 0.4],
        [at('2026-11-20T01:02:04Z'), 0.5],
      ],
    });
    expect(market.unread.size).toBe(0);
    const row = market.rows.get('A.T')!;
    expect(row).toMatchObject({ name: 'Alpha', venue: 'XTKS', spreads: [0.1, 0.3, 0.4] });
    expect(row.change).toBeCloseTo(0.1);
    expect(row.sinceMs).toBe(Date.parse('2026-11-20T01:02:02Z'));
    market.addPill(pill({ offset: 2, gross_spread_percent: 0.2 }));
    expect(row.change).toBeCloseTo(-0.2);
    expect(row.sinceMs).toBeCloseTo(Date.parse('2026-11-20T01:02:03Z'), 1);
  });

  test('history that arrives after more pills keeps the change between the last two', () => {
    const market = createMarket();
    market.addPill(pill({ offset: 1, gross_spread_percent: 0.4 }));
    market.addPill(pill({ offset: 2, gross_spread_percent: 0.5 }));
    market.addFacts('A.T', { name: null, venue: null, spreads: [[0, 0.1]] });
    expect(market.rows.get('A.T')).toMatchObject({ spreads: [0.1, 0.4, 0.5] });
    expect(market.rows.get('A.T')!.change).toBeCloseTo(0.1);
  });

  test('the reason for quiet disappears with the next pill', () => {
    const market = createMarket();
    market.addPill(pill());
    market.setQuiet('A.T', 'lunch break');
    expect(market.rows.get('A.T')!.quiet).toBe('lunch break');
    market.addPill(pill({ offset: 2 }));
    expect(market.rows.get('A.T')!.quiet).toBeUndefined();
  });
});

describe('order', () => {
  const row = (symbol: string, spread: number, change: number | undefined, atMs: number): Row => ({
    symbol,
    spread,
    change,
    atMs,
    confidence: spread,
    offset: 0,
    count: 1,
    quiet: undefined,
    state: symbol < 'B' ? 'open' : 'closed',
    name: symbol === 'B.T' ? 'Banana' : undefined,
    venue: symbol === 'C.T' ? 'XHKG' : 'XTKS',
    sinceMs: undefined,
    receivedAt: 0,
    firstReceivedAt: 0,
    spreads: [],
  });
  const rows = [row('B.T', 2, -1, 30), row('A.T', 1, undefined, 10), row('C.T', 3, 1, 20)];
  const venue = (name: string, state: Venue['state'], opens_at: string | null): Venue => {
    return { name, state, opens_at, changes_at: opens_at };
  };
  const venues = new Map([
    ['XTKS', venue('Tokyo', 'holiday', '2026-11-24T00:00:00.000000Z')],
    ['XHKG', venue('Hong Kong', 'closed', '2026-11-23T01:30:00.000000Z')],
    ['XASX', venue('Sydney', 'closed', '2026-11-22T23:00:00.000000Z')],
    ['FX', venue('Currencies', 'open', null)],
  ]);
  const named = (by: Sort, isDescending: boolean, filter = '') =>
    sortRows(rows, venues, { by, isDescending }, filter).map(({ symbol }) => symbol.slice(0, 1));

  test.each([
    ['symbol', false, 'ABC'],
    ['symbol', true, 'CBA'],
    ['spread', true, 'CBA'],
    ['change', true, 'CBA'],
    ['change', false, 'BCA'],
    ['confidence', false, 'ABC'],
    ['state', false, 'CBA'],
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
    ['banan', 'B'],
    ['hong', 'C'],
    ['x', ''],
  ])('filter %j: %j', (filter, expected) => {
    expect(named('symbol', false, filter).join('')).toBe(expected);
  });

  test('closed venues are listed once, with their symbols here; the first to open comes first', () => {
    const listed = closedVenues([...rows, { ...rows[0]!, venue: 'FX' }], venues);
    expect(listed.map(({ name, symbols }) => [name, symbols])).toEqual([
      ['Hong Kong', 1],
      ['Tokyo', 2],
    ]);
  });

  test('a second click on a column reverses the order; numbers begin with the largest', () => {
    const first = nextOrder({ by: 'symbol', isDescending: false }, 'spread');
    expect(first).toEqual({ by: 'spread', isDescending: true });
    expect(nextOrder(first, 'spread')).toEqual({ by: 'spread', isDescending: false });
    expect(nextOrder(first, 'age')).toEqual({ by: 'age', isDescending: false });
  });
});

describe('clock and rate', () => {
  test('the fastest frame sets the clock; a changed server clock is adopted after a minute', () => {
    const clock = createClock();
    expect(clock.now(0)).toBeUndefined();
    clock.observe(1_000, 100);
    clock.observe(1_940, 1_100);
    expect(clock.now(2_000)).toBe(2_900);
    clock.observe(32_000, 32_100);
    expect(clock.now(32_100)).toBe(33_000);
    clock.observe(64_000, 64_100);
    expect(clock.now(64_100)).toBe(64_000);
  });

  test('the rate covers the last five complete seconds, not the current one', () => {
    const rate = createPillRate();
    for (let ms = 10_000; ms < 15_000; ms += 100) rate.add(ms, ms % 200);
    expect(rate.perS(15_000)).toBe(10);
    rate.add(15_001, undefined);
    expect(rate.perS(15_002)).toBe(10);
    expect(rate.perS(17_000)).toBeCloseTo(31 / 5);
    expect(rate.perS(60_000)).toBe(0);
  });

  test('the median latency covers the last 15 s; undefined without a known latency', () => {
    const rate = createPillRate();
    expect(rate.medianMs(0)).toBeUndefined();
    for (const [ms, latencyMs] of [
      [0, 900],
      [1, 800],
      [10_000, 5],
      [10_001, 7],
    ] as const) {
      rate.add(ms, latencyMs);
    }
    rate.add(10_002, undefined);
    expect(rate.medianMs(10_002)).toBe(800);
    expect(rate.medianMs(16_000)).toBe(7);
    expect(rate.medianMs(60_000)).toBeUndefined();
  });

  test('a rate that varies around the limit switches once', () => {
    let calm = true;
    const states = [10, 50, 51, 49, 51, 36, 35, 49, 51].map((perS) => {
      calm = isCalm(calm, perS);
      return calm ? 'calm' : 'busy';
    });
    expect(states.join(' ')).toBe('calm calm busy busy busy busy calm calm busy');
  });

  test('microsOf keeps microseconds', () => {
    const ms = Date.parse('2026-11-20T01:02:03.004Z');
    expect(microsOf('2026-11-20T01:02:03.004567Z')).toBe(ms * 1_000 + 567);
  });
});
