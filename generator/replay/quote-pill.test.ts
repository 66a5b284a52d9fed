import { describe, expect, it } from 'vitest';
import { nowMicros } from '../../lib/timing/clock.ts';
import { checkPill } from '../../schemas/pill.ts';
import { confidenceOf, idStem, quotePill, spreadPercent, symbolOfFile } from './quote-pill.ts';

describe('spread in percent of mid', () => {
  it.each([
    [99, 101, 2],
    [101, 99, -2],
    [100, 100, 0],
    [109.676, 109.687, (0.011 / 109.6815) * 100],
    [1e308, 1e308, 0],
    [1e-300, 1e300, 200],
  ])('bid %d, ask %d is %d', (bid, ask, spread) => {
    expect(spreadPercent(bid, ask)).toBeCloseTo(spread, 10);
    expect(Object.is(spreadPercent(bid, ask), -0)).toBe(false);
  });
});

describe('confidence by spread', () => {
  it.each([
    [-0.1, 0],
    [0, 100],
    [0.05, 50],
    [200, 0.02],
  ])('%d gives %d', (spread, confidence) => {
    expect(confidenceOf(spread)).toBe(confidence);
  });
});

describe('a file name that starts with two currencies gives the symbol', () => {
  it.each([
    ['', undefined],
    ['quotes.csv', undefined],
    ['sample-quotes.csv', undefined],
    ['eurjpy-sample-quotes.csv', 'EUR/JPY'],
    ['usdusd.csv', undefined],
    ['usdjpyx.csv', undefined],
    ['7203.T.csv', undefined],
    ['usdjpy-2019-01-01.csv', 'USD/JPY'],
    ['AUD_USD.csv', 'AUD/USD'],
    ['eur-jpy.2026.csv', 'EUR/JPY'],
  ])('%s', (name, symbol) => {
    expect(symbolOfFile(name)).toBe(symbol);
  });
});

it('an id holds file, line and run, in characters safe everywhere', () => {
  const making = {
    symbol: 'EUR/JPY',
    marketState: 'open',
    confidence: 'spread' as const,
    stem: idStem(`${'é '.repeat(90)}.csv`),
    run: '20261120T010203.004000Z',
    stamp: (time: number) => time,
  };
  const quote = { line: 7, timestamp: 1767571200123000, bid: 1e-300, ask: 1e300 };
  const pill = quotePill(quote, making);
  expect(pill.id).toBe(`${'_'.repeat(64)}-7@20261120T010203.004000Z`);
  expect(checkPill(pill, { confidenceMax: 100, now: nowMicros() })).toEqual([]);
  expect(quotePill(quote, making)).toEqual(pill);
  expect(quotePill(quote, { ...making, run: undefined }).id).toBe(`${'_'.repeat(64)}-7`);
});
