import { expect, test } from 'vitest';
import type { LatestRow } from '../../../domain/order/latest-table.ts';
import { waitFor } from '../../../testing/wait.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { prefetchWindows } from './prefetch.ts';

const { prefetchFailuresMax } = VERIFY_LIMITS;
const BAD = prefetchFailuresMax + 3;
const GOOD = 20;

test('symbols that cannot be read do not hold up the others, and are retried', async () => {
  const symbols = [
    ...Array.from({ length: BAD }, (_, n) => `BAD${n}`),
    ...Array.from({ length: GOOD }, (_, n) => `GOOD${n}`),
  ];
  const tried: string[] = [];
  const stop = new AbortController();
  const fillWindow = async (symbol: string) => {
    tried.push(symbol);
    return symbol.startsWith('GOOD');
  };
  const rows = () => symbols.map((symbol) => ({ pill: { symbol } }) as LatestRow).values();
  const prefetching = prefetchWindows({ fillWindow, view: { rows }, pauseMs: 1 }, stop.signal);
  const timesOf = (symbol: string) => tried.filter((one) => one === symbol).length;
  await waitFor('a retry of every bad symbol', () =>
    symbols.slice(0, BAD).every((symbol) => timesOf(symbol) >= 2),
  );
  stop.abort();
  await prefetching;
  // The first round ended at the bound; the second began after it.
  expect(tried.slice(0, BAD + GOOD)).toEqual(symbols);
  expect(tried[BAD + GOOD]).toBe('BAD0');
  expect(prefetchFailuresMax).toBeLessThan(BAD);
  for (const symbol of symbols.slice(BAD)) expect(timesOf(symbol), symbol).toBe(1);
});
