import { expect, test } from 'vitest';
import type { LatestRow } from '../../../lib/latest-table.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { keepWarm } from './keep-warm.ts';
import { VERIFY_LIMITS } from './limits.ts';

const BAD = VERIFY_LIMITS.warmFailuresMax + 3;
const GOOD = 20;

test('symbols that cannot be warmed keep none of the others waiting, and are tried again', async () => {
  const symbols = [
    ...Array.from({ length: BAD }, (_, n) => `BAD${n}`),
    ...Array.from({ length: GOOD }, (_, n) => `GOOD${n}`),
  ];
  const tried: string[] = [];
  const stop = new AbortController();
  const weigher = {
    warm: async (symbol: string) => {
      tried.push(symbol);
      return symbol.startsWith('GOOD');
    },
  };
  const rows = () => symbols.map((symbol) => ({ pill: { symbol } }) as LatestRow).values();
  const keeping = keepWarm({ weigher, view: { rows }, againMs: 1 }, stop.signal);
  const timesOf = (symbol: string) => tried.filter((one) => one === symbol).length;
  await waitFor('every bad one again', () =>
    symbols.slice(0, BAD).every((symbol) => timesOf(symbol) >= 2),
  );
  stop.abort();
  await keeping;
  // The first round ended at the bound; the second began behind it.
  const { warmFailuresMax } = VERIFY_LIMITS;
  expect(tried.slice(0, BAD + GOOD)).toEqual(symbols);
  expect(tried[BAD + GOOD]).toBe('BAD0');
  expect(warmFailuresMax).toBeLessThan(BAD);
  for (const symbol of symbols.slice(BAD)) expect(timesOf(symbol), symbol).toBe(1);
});
