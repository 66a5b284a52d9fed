import { afterAll, beforeAll, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/clock.ts';
import { makePill } from '../../../lib/testing/pills.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import * as plain from './testing/recompute.ts';
import { near, openWorld, type Parameters, type World } from './testing/world.ts';

let world: World;

beforeAll(async () => {
  world = await openWorld({ walks: [] });
}, 120_000);

afterAll(() => world?.close());

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
])('%s refuses %j, and says which parameter', async (name, parameters, wrong) => {
  const { status, body } = await world.ask(name, parameters as Parameters);
  expect([status, body.code]).toEqual([400, 'parameter_invalid']);
  expect(JSON.stringify(body.errors)).toContain(wrong);
});

test('who moved, and why one was silent', async () => {
  const spreads = {
    'COIN:A': [0.1, 0.11, 0.12, 0.13, 0.15],
    'COIN:B': [0.3, 0.29, 0.31, 0.3, 0.1],
  };
  // Longer than the 5 s after which a silence is a gap: nothing of anybody, then A alone, then B.
  // A receive time is believed within 5 s of the append, which comes after `now`.
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
  await world.write(pills);
  const movers = await waitFor('all to be stored', async () => {
    const { body } = await world.ask('movers', { window: '5m', min_count: 5 });
    return body.data.length === 2 && body;
  });
  const row = (symbol: keyof typeof spreads) => {
    const [all, last] = [spreads[symbol], spreads[symbol][4]!];
    const z = (last - plain.mean(all)) / plain.deviation(all);
    // biome-ignore lint/suspicious/noThenProperty: a word of the contract; it is a number
    return near({ symbol, now: last, then: all[0], change: last - all[0]!, z, count: 5 });
  };
  expect(movers.data).toEqual([row('COIN:B'), row('COIN:A')]);
  const because = async (symbol: string) => {
    const window = { from: now - 1_000_000, to: now + 5_000_000 };
    const { body } = await world.ask('cadence', { symbol, ...window });
    expect(body).toMatchObject({ count: 4, gaps_count: 1, late_after_ms: 5_000 });
    return body.gaps[0].because;
  };
  expect(await because('COIN:A')).toBe('generator_silent');
  expect(await because('COIN:B')).toBe('generator_late');
}, 60_000);

test('a silence that goes on is a gap, wherever the window begins', async () => {
  const symbol = 'COIN:SILENT';
  const now = nowMicros();
  await world.write([makePill({ symbol, timestamp: now, received_at: now })]);
  const silence = (from: number) =>
    waitFor('the gap', async () => {
      const { body } = await world.ask('cadence', { symbol, from, to: now + 3_600_000_000 });
      return body.gaps_count === 1 && body;
    });
  const since = await silence(now - 1_000_000);
  expect(since).toMatchObject({ count: 0, gaps: [{ from: formatTimestamp(now) }] });
  expect(since.gaps[0].seconds).toBeGreaterThan(5);
  const after = await silence(now + 1_000_000);
  expect(after.gaps[0]).toMatchObject({ from: formatTimestamp(now) });
});

test('of what was never sent nothing is made up', async () => {
  const symbol = 'NEVER.T';
  expect((await world.ask('bars', { symbol })).body).toMatchObject({ data: [], next: null });
  expect((await world.ask('summary', { symbol })).body).toMatchObject({
    count: 0,
    spread: null,
    last: null,
  });
  const { body } = await world.ask('states', { symbol });
  expect(body.data).toEqual([
    { market_state: 'unobserved', seconds: 86_400, share: 1, spells: 1, pills: 0 },
  ]);
  expect((await world.ask('cadence', { symbol })).body).toMatchObject({
    count: 0,
    gaps: [],
    expected_ms: null,
  });
  expect((await world.ask('outliers', { symbol })).body).toMatchObject({ count: 0, data: [] });
});
