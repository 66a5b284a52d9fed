import { expect, it } from 'vitest';
import type { Cell } from './cell.ts';
import { summarise } from './goals.ts';
import { median, percentilesOf } from './percentiles.ts';
import { pillCount, pillId, plannedMicros, SYMBOLS, subscribeFrames, wantedOf } from './plan.ts';

it('two of fifty: each symbol is wanted by as many sockets, and hardly two want the same', () => {
  const wanted = subscribeFrames('2of50', 500).map(
    (frame) => (JSON.parse(frame) as { symbols: string[] }).symbols,
  );
  const counts = SYMBOLS.map((symbol) => wanted.filter((of) => of.includes(symbol)).length);
  expect(new Set(counts)).toEqual(new Set([20]));
  expect(wanted.every(([a, b]) => a !== b)).toBe(true);
  expect(new Set(wanted.map((of) => [...of].sort().join())).size).toBe(500);
});

it.each([
  [100, 8, 800],
  [1_000, 8, 8_000],
  [3, 1, 50],
  [1_001, 1, 1_000],
])('%d pills/s for %d s are %d pills: each symbol as many', (perS, seconds, pills) => {
  expect(pillCount(perS, seconds)).toBe(pills);
  expect(wantedOf('all', pills)).toBe(pills);
  expect(wantedOf('2of50', pills)).toBe(pills / 25);
});

it('an id tells the number and the planned moment', () => {
  const plan = { run: 'fa', perS: 3, pills: 50, startMicros: 1_000_000 };
  expect(plannedMicros(plan, 2)).toBe(1_666_667);
  expect(pillId(plan, 2)).toBe('fa-2-1666667');
});

it('percentiles of a histogram are the upper edges of their buckets', () => {
  expect(percentilesOf([])).toEqual({ count: 0, p50: 0, p99: 0, p999: 0, max: 0 });
  const histogram = [
    [10, 500],
    [20, 490],
    [30, 9],
    [40, 1],
  ] as const;
  expect(percentilesOf(histogram)).toEqual({ count: 1_000, p50: 10, p99: 20, p999: 30, max: 40 });
  expect(median([3, 1, 2])).toBe(2);
});

it('the stream is compared with the loop of the same round', () => {
  const cell = (target: Cell['target'], round: number, serverSecondsPerMillion: number) =>
    ({ target, round, serverSecondsPerMillion, pattern: 'all', perS: 100 }) as Cell;
  const cells = [
    ...[cell('stream', 1, 2), cell('loop', 1, 4)],
    ...[cell('stream', 2, 6), cell('loop', 2, 6)],
    ...[cell('stream', 3, 3), cell('loop', 3, 4)],
  ];
  expect(summarise(cells)).toEqual([
    {
      ...{ pattern: 'all', perS: 100, stream: 3, loop: 4 },
      ...{ ratio: 0.75, ratioMin: 0.5, ratioMax: 1 },
    },
  ]);
});
