import { expect, test } from 'vitest';
import { hintForSymbol, probableSymbol } from '../../../schemas/pill.ts';
import { createFindUnknown } from './known-symbols.ts';

const KNOWN = ['7203.T', '0700.HK', '6758.T', '6758.OS', 'COIN:BTC', 'TEST:9'];
const viewOf = (isReady: boolean) => ({
  isReady: () => isReady,
  get: (symbol: string) => KNOWN.find((known) => known === symbol),
  rows: () => KNOWN.map((symbol) => ({ pill: { symbol } })),
});

test('unknown symbols are named, with the only known symbol of the same stem', () => {
  const asked = ['7203.T', '7203', '0700.T', '6758', 'COIN', 'TEST', 'NOPE.T', '.X'];
  expect(createFindUnknown(viewOf(true))(asked)).toEqual([
    { symbol: '7203', did_you_mean: '7203.T' },
    { symbol: '0700.T', did_you_mean: '0700.HK' },
    { symbol: '6758' },
    { symbol: 'COIN', did_you_mean: 'COIN:BTC' },
    { symbol: 'TEST' },
    { symbol: 'NOPE.T' },
    { symbol: '.X' },
  ]);
});

test('while the latest pills are read, no symbol counts as unknown', () => {
  expect(createFindUnknown(viewOf(false))(['7203'])).toEqual([]);
});

test.each([
  ['7203.t', '7203.T'],
  ['７２０３．Ｔ', '7203.T'],
  [' 0700.HK ', '0700.HK'],
  ["A' OR 1=1", undefined],
  ['', undefined],
])('%s probably means %s', (text, meant) => {
  expect(probableSymbol(text)).toBe(meant);
  if (meant !== undefined) expect(hintForSymbol(text)).toContain(`Perhaps you mean ${meant}.`);
});
