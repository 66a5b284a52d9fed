import { describe, expect, test } from 'vitest';
import { type EndToEndRun, isGoalKept, ratiosOf } from './end-to-end-bench.ts';

function runOf(via: EndToEndRun['via'], p50: number, p99: number, valid = true): EndToEndRun {
  const delivered = { count: 0, p50, p99, p999: p99, max: p99 };
  return {
    ...{ via, perS: 1_000, pills: 10, valid, cpu: {} },
    load: { failed: [] },
    watch: { delivered, lost: 0, doubled: 0 },
  } as unknown as EndToEndRun;
}

describe('the ratios of end-to-end', () => {
  test('compare the log alone with each of our ways to send, at the same rate', () => {
    const ratios = ratiosOf([
      runOf('log', 2_000, 1),
      runOf('http', 4_000, 1),
      runOf('direct', 2_500, 1),
    ]);
    expect(ratios).toEqual([
      { name: 'log alone ÷ POST → socket, p50 at 1,000/s', ratio: 0.5, valid: true },
      { name: 'log alone ÷ produce → socket, p50 at 1,000/s', ratio: 0.8, valid: true },
    ]);
  });

  test.each([
    [true, false],
    [false, true],
  ])('are invalid where either run was (log %s, ours %s)', (log, ours) => {
    const [ratio] = ratiosOf([runOf('log', 1, 1, log), runOf('http', 1, 1, ours)]);
    expect(ratio!.valid).toBe(false);
  });

  test('are absent without a run of the log alone', () => {
    expect(ratiosOf([runOf('http', 1, 1)])).toEqual([]);
  });
});

test.each([
  [runOf('http', 3_000, 12_000), 10, true],
  [runOf('http', 3_001, 12_000), 10, false],
  [runOf('http', 3_000, 12_001), 10, false],
  [runOf('http', 1, 1, false), 10, undefined],
  [runOf('http', 1, 1), 500, undefined],
  [runOf('direct', 1, 1), 10, undefined],
])(
  'the goal is judged for a valid POST → socket at 1,000/s with 10 sockets',
  (run, clients, kept) => {
    expect(isGoalKept(run, clients)).toBe(kept);
  },
);
