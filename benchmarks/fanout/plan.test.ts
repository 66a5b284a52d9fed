import { expect, it } from 'vitest';
import { percentilesOf } from '../load/load-client.ts';
import type { FanoutCell } from './cell.ts';
import { summarise } from './fanout-report.ts';
import { pillCount, SYMBOLS, subscribeFrames, wantedOf } from './plan.ts';

it('two of fifty: each symbol has equally many sockets, and no two sockets have the same pair', () => {
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
])('%d pills/s for %d s are %d pills, equally many of each symbol', (perS, seconds, pills) => {
  expect(pillCount(perS, seconds)).toBe(pills);
  expect(wantedOf('all', pills)).toBe(pills);
  expect(wantedOf('2of50', pills)).toBe(pills / 25);
});

it('percentiles of a histogram are the upper edges of their buckets', () => {
  expect(percentilesOf([])).toEqual({ count: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0 });
  const histogram = [
    [10, 500],
    [20, 490],
    [30, 9],
    [40, 1],
  ] as const;
  expect(percentilesOf(histogram)).toEqual({
    ...{ count: 1_000, p50: 10, p90: 20, p99: 20, p999: 30, max: 40 },
  });
});

it('the stream is compared with the loop of the same round', () => {
  const cell = (target: FanoutCell['target'], round: number, serverSecondsPerMillion: number) =>
    ({ target, round, serverSecondsPerMillion, pattern: 'all', perS: 100 }) as FanoutCell;
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
