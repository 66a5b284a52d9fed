import { afterAll, beforeAll, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import {
  type AnalyticsFixture,
  near,
  openAnalyticsFixture,
  type Parameters,
} from './testing/analytics-fixture.ts';
import * as reference from './testing/recompute.ts';

let fixture: AnalyticsFixture;

beforeAll(async () => {
  fixture = await openAnalyticsFixture({ walks: [] });
});

afterAll(() => fixture?.close());

test.each([
  ['bars', {}, 'symbol'],
  ['bars', { symbol: '7203.T', from: '2026-11-20' }, 'from'],
  ['bars', { symbol: '7203.T', from: '2026-11-20T00:00:00' }, 'from'],
  ['bars', { symbol: '7203.T', from: '2026-11-20T02:00:00Z', to: '2026-11-20T01:00:00Z' }, 'from'],
  [
    'bars',
    { symbol: '7203.T', interval: '1s', from: '2026-11-18T00:00:00Z', to: '2026-11-20T00:00:00Z' },
    'from',
  ],
  ['bars', { symbol: '7203.T', interval: '2m' }, 'interval'],
  ['bars', { symbol: '7203.T', interval: '1m', day: 'session' }, 'day'],
  ['bars', { symbol: 'NOWHERE', interval: '1d', day: 'session' }, 'day'],
  [
    'bars',
    {
      symbol: '7203.T',
      interval: '1d',
      day: 'session',
      from: '2018-12-01T00:00:00Z',
      to: '2019-02-01T00:00:00Z',
    },
    'calendar_unknown',
  ],
  ['bars', { symbol: '7203.T', symbols: '7203.T' }, 'parameters_exclusive'],
  [
    'bars',
    { symbols: Array.from({ length: 21 }, (_, at) => `S${at}`).join() },
    '21 symbols, limit 20',
  ],
  ['bars', { symbols: '7203.T,bad one' }, 'bad one'],
  ['bars', { symbols: '7203.T', interval: '1d', day: 'session' }, 'requires `symbol`'],
  ['bars', { symbols: '7203.T', page: '1763600000000000' }, 'page_unknown'],
  ['bars', { symbol: '7203.T', page: '1763600000000000~7203.T' }, 'page_unknown'],
  ['bars', { symbol: '7203.T', limit: 1_001 }, 'limit'],
  ['bars', { symbol: '7203.T', page: 'x' }, 'page'],
  ['bars', { symbol: '7203.T', page: '1' }, 'page'],
  ['bars', { symbol: "7203.T' OR 1=1 --" }, 'symbol'],
  ['states', { symbol: '7203.T', max_hold_s: 0 }, 'max_hold_s'],
  ['movers', { window: '2h' }, 'window'],
  ['movers', { order: 'x' }, 'order'],
  ['outliers', { symbol: '7203.T', threshold: 0.5 }, 'threshold'],
  ['correlation', { symbols: '7203.T' }, 'symbols'],
  ['correlation', { symbols: '7203.T,7203.T' }, 'symbols'],
  ['correlation', { symbols: '7203.T,bad one' }, 'symbols'],
  ['correlation', { symbols: Array.from({ length: 21 }, (_, at) => `S${at}`).join() }, 'symbols'],
  ['confidence', { scale: 0 }, 'scale'],
  ['confidence', { symbol: '*', from: '2026-11-18T00:00:00Z', to: '2026-11-20T00:00:00Z' }, 'from'],
])('%s refuses %j and names the parameter', async (name, parameters, wrong) => {
  const { status, body } = await fixture.ask(name, parameters as Parameters);
  expect([status, body.code]).toEqual([400, 'parameter_invalid']);
  expect(JSON.stringify(body.errors)).toContain(wrong);
});

test('unknown symbols are named', async () => {
  const [summary, correlation] = [
    await fixture.ask('summary', { symbol: 'NONE.T' }),
    await fixture.ask('correlation', { symbols: 'NONE.T,NOPE.T' }),
  ];
  expect([summary.status, summary.body.unknown_symbols]).toEqual([200, [{ symbol: 'NONE.T' }]]);
  const bars = await fixture.ask('bars', { symbols: 'NONE.T,NOPE.T' });
  expect(bars.body).toMatchObject({
    data: [],
    unknown_symbols: [{ symbol: 'NONE.T' }, { symbol: 'NOPE.T' }],
  });
  expect(correlation.body.unknown_symbols).toEqual([{ symbol: 'NONE.T' }, { symbol: 'NOPE.T' }]);
});

test('movers, and the reasons of gaps', async () => {
  const spreads = {
    'COIN:A': [0.1, 0.11, 0.12, 0.13, 0.15],
    'COIN:B': [0.3, 0.29, 0.31, 0.3, 0.1],
  };
  // After more than the 5 s that make a gap, A's pill comes, then B's: A's gap has no other pill,
  // B's has one. Receive times are accepted within 5 s of the append, which comes after `now`.
  const now = nowMicros();
  const receivedMs = {
    'COIN:A': [-550, -450, -350, -250, 4_850],
    'COIN:B': [-600, -500, -400, -300, 4_950],
  };
  const symbols = Object.keys(spreads) as (keyof typeof spreads)[];
  const pills = symbols.flatMap((symbol) =>
    spreads[symbol].map((spread, at) => {
      const time = now + receivedMs[symbol][at]! * 1_000;
      return makePill({ symbol, gross_spread_percent: spread, timestamp: time, received_at: time });
    }),
  );
  await fixture.write(pills);
  const movers = await waitFor('all pills to be stored', async () => {
    const { body } = await fixture.ask('movers', { window: '5m', min_count: 5 });
    return body.data.length === 2 && body;
  });
  const row = (symbol: keyof typeof spreads) => {
    const [all, last] = [spreads[symbol], spreads[symbol][4]!];
    const z = (last - reference.mean(all)) / reference.deviation(all);
    // biome-ignore lint/suspicious/noThenProperty: a field of the contract; it is a number
    return near({ symbol, now: last, then: all[0], change: last - all[0]!, z, count: 5 });
  };
  expect(movers.data).toEqual([row('COIN:B'), row('COIN:A')]);
  const because = async (symbol: string) => {
    const window = { from: now - 1_000_000, to: now + 5_000_000 };
    const { body } = await fixture.ask('cadence', { symbol, ...window });
    expect(body).toMatchObject({ count: 4, gaps_count: 1, late_after_ms: 5_000 });
    return body.gaps[0].because;
  };
  expect(await because('COIN:A')).toBe('generator_silent');
  expect(await because('COIN:B')).toBe('generator_late');
});

test('a continuing silence is a gap, wherever the window begins', async () => {
  const symbol = 'COIN:SILENT';
  const now = nowMicros();
  await fixture.write([makePill({ symbol, timestamp: now, received_at: now })]);
  const silence = (from: number) =>
    waitFor('the gap', async () => {
      const { body } = await fixture.ask('cadence', { symbol, from, to: now + 3_600_000_000 });
      return body.gaps_count === 1 && body;
    });
  const since = await silence(now - 1_000_000);
  expect(since).toMatchObject({ count: 0, gaps: [{ from: formatTimestamp(now) }] });
  expect(since.gaps[0].seconds).toBeGreaterThan(5);
  const after = await silence(now + 1_000_000);
  expect(after.gaps[0]).toMatchObject({ from: formatTimestamp(now) });
});

test('a symbol without pills has empty figures', async () => {
  const symbol = 'NEVER.T';
  expect((await fixture.ask('bars', { symbol })).body).toMatchObject({ data: [], next: null });
  expect((await fixture.ask('summary', { symbol })).body).toMatchObject({
    count: 0,
    spread: null,
    last: null,
  });
  const { body } = await fixture.ask('states', { symbol });
  expect(body.data).toEqual([
    { market_state: 'unobserved', seconds: 86_400, share: 1, spells: 1, pills: 0 },
  ]);
  expect((await fixture.ask('cadence', { symbol })).body).toMatchObject({
    count: 0,
    gaps: [],
    expected_ms: null,
  });
  expect((await fixture.ask('outliers', { symbol })).body).toMatchObject({ count: 0, data: [] });
});
