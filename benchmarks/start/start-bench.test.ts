import { expect, test } from 'vitest';
import { type Start, stepsOf, summariseStarts } from './start-bench.ts';

const moments = {
  ...{ begun: 2_000, enginesUp: 12_000, platformUp: 18_000 },
  ...{ socketLive: 18_100, firstPill: 18_150 },
};

function start(kind: Start['kind'], round: number, wholeMs: number): Start {
  return { kind, round, wholeMs, steps: stepsOf(moments) };
}

test('the steps of a start add up to its total', () => {
  const steps = stepsOf(moments);
  expect(steps).toEqual({ build: 2_000, engines: 10_000, platform: 6_000, socket: 100, pill: 50 });
  expect(Object.values(steps).reduce((sum, ms) => sum + ms, 0)).toBe(moments.firstPill);
});

test('cold and warm starts are summarised apart, by their medians', () => {
  const starts = [start('cold', 1, 20_000), start('warm', 1, 10_000), start('cold', 2, 30_000)];
  expect(summariseStarts(starts)).toMatchObject([
    { kind: 'cold', rounds: 2, wholeMs: 25_000, wholeMinMs: 20_000, wholeMaxMs: 30_000 },
    { kind: 'warm', rounds: 1, wholeMs: 10_000 },
  ]);
});

test('without starts there is no summary', () => {
  expect(summariseStarts([])).toEqual([]);
});
