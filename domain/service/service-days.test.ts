import { expect, test } from 'vitest';
import { LATENCY_BUCKETS_S } from '../../lib/metrics/metrics.ts';
import { latencyFigures, mergeIncidents } from './service-days.ts';

const countsOf = (pairs: readonly (readonly [bound: number, pills: number])[]) => {
  const counts = LATENCY_BUCKETS_S.map(() => 0).concat(0);
  for (const [bound, pills] of pairs) {
    const bucket = LATENCY_BUCKETS_S.indexOf(bound);
    counts[bucket < 0 ? LATENCY_BUCKETS_S.length : bucket] = pills;
  }
  return counts;
};

test('percentiles lie within their buckets; the share within 100 ms is exact', () => {
  const figures = latencyFigures(
    countsOf([
      [0.005, 990],
      [0.1, 5],
      [0.2, 5],
    ]),
  );
  expect(figures).toMatchObject({ pills: 1_000, promiseShare: 0.995 });
  expect(figures.p50Ms).toBeCloseTo(4.01, 2);
  expect(figures.p99Ms).toBeCloseTo(5, 5);
});

test('beyond the last bound, that bound is the figure', () => {
  expect(latencyFigures(countsOf([[Number.POSITIVE_INFINITY, 3]])).p99Ms).toBe(5_000);
});

test('incidents of several processes are joined by component', () => {
  const at = (s: number) => new Date(s * 1_000);
  const of = (component: string, began: number, ended: number | null) => ({
    ...{ component, beganAt: at(began), endedAt: ended === null ? null : at(ended) },
  });
  expect(
    mergeIncidents([of('log', 5, 20), of('accounts', 6, 8), of('log', 0, 10), of('log', 30, null)]),
  ).toEqual([of('log', 30, null), of('accounts', 6, 8), of('log', 0, 20)]);
});
