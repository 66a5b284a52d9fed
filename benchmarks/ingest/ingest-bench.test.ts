import { describe, expect, test } from 'vitest';
import { type ClosedRun, summarise } from '../http-load/targets.ts';
import { goalOf, type Name, ratiosOf } from './ingest-bench.ts';

function runOf(round: number, target: Name, countPerS: number, failures = {}): ClosedRun<Name> {
  return {
    ...{ round, target, countPerS, count: countPerS * 2, serverCpuS: 1, engineCpuS: Number.NaN },
    ...{ busyCores: 1, otherCores: 0 },
    load: { seconds: 2, cpuS: 0.5, failures },
  } as unknown as ClosedRun<Name>;
}

const rounds = [
  ...[runOf(1, 'echo', 1_000), runOf(1, 'naive', 100), runOf(1, 'ours', 400)],
  ...[runOf(1, 'batch', 9_000), runOf(2, 'batch', 9_000), runOf(2, 'echo', 2_000)],
  ...[runOf(2, 'naive', 100), runOf(2, 'ours', 1_000)],
];

const NAMES = ['echo', 'naive', 'ours', 'batch'] as const;

function ratios(valid: boolean, of = rounds) {
  const summaries = NAMES.map((name) => summarise(of, name, 'echo'));
  return ratiosOf(summaries, [{ valid }]);
}

describe('rounds of ingest', () => {
  test('a ratio compares two runs of the same round', () => {
    const { ratio, ratioMin, ratioMax, perS } = summarise(rounds, 'ours', 'echo');
    expect([ratio, ratioMin, ratioMax, perS]).toEqual([0.45, 0.4, 0.5, 700]);
  });

  test('CPU is given by pill, and as NaN where it cannot be read', () => {
    const summary = summarise(rounds.slice(0, 4), 'ours', 'echo');
    const { serverMicros, engineMicros, clientMicros, serverCores } = summary;
    expect([serverMicros, engineMicros, clientMicros, serverCores]).toEqual([
      1_250,
      Number.NaN,
      625,
      0.5,
    ]);
  });

  test.each([
    [400, 'kept'],
    [399, 'MISSED'],
  ])('ours at %d of an echo of 1,000: %s', (perS, verdict) => {
    const summary = summarise([runOf(1, 'echo', 1_000), runOf(1, 'ours', perS)], 'ours', 'echo');
    expect(goalOf(summary)).toContain(verdict);
  });
});

describe('the ratios of ingest', () => {
  test('are to the echo and to the naive server', () => {
    expect(ratios(true).map(({ name, valid }) => [name, valid])).toEqual([
      ['ours ÷ echo', true],
      ['ours ÷ naive', true],
      ['batch ÷ echo', true],
    ]);
  });

  test('are all invalid where the load client was late', () => {
    expect(ratios(false).map(({ valid }) => valid)).toEqual([false, false, false]);
  });

  test('are invalid for a target that failed', () => {
    const failing = [...rounds, runOf(3, 'batch', 9_000, { 503: 1 })];
    expect(ratios(true, failing).map(({ valid }) => valid)).toEqual([true, true, false]);
  });
});
