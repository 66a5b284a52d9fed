import { describe, expect, test } from 'vitest';
import type { HalfRateRun, IngestResult } from './ingest.ts';
import type { IngestRun } from './run.ts';
import { summarise, verdictOf } from './summary.ts';
import { ingestExtras } from './table.ts';
import type { TargetName } from './targets.ts';

function runOf(target: TargetName, pillsPerS: number, failures = {}): IngestRun {
  return {
    ...{ target, pillsPerS, pills: pillsPerS * 2, serverCpuS: 1, brokerCpuS: null },
    ...{ busyCores: 1, otherCores: 0 },
    load: { seconds: 2, cpuS: 0.5, failures },
  } as unknown as IngestRun;
}

const rounds = [
  [runOf('echo', 1_000), runOf('naive', 100), runOf('ours', 400), runOf('batch', 9_000)],
  [runOf('batch', 9_000), runOf('echo', 2_000), runOf('naive', 100), runOf('ours', 1_000)],
];

const NAMES = ['echo', 'naive', 'ours', 'batch'] as const;

function ratiosOf(halfRateValid: boolean, of = rounds) {
  const summaries = NAMES.map((name) => summarise(of, name));
  const load = { answeredEncoded: null, timeline: [] };
  const halfRate = [
    { target: 'ours', perS: 1, valid: halfRateValid, load } as unknown as HalfRateRun,
  ];
  return ingestExtras({ summaries, halfRate } as unknown as IngestResult).ratios;
}

describe('rounds of ingest', () => {
  test('a ratio is that of one round, not of two', () => {
    const { ratio, ratioMin, ratioMax, pillsPerS } = summarise(rounds, 'ours');
    expect([ratio, ratioMin, ratioMax, pillsPerS]).toEqual([0.45, 0.4, 0.5, 700]);
  });

  test('CPU is told by pill, and not at all where it cannot be read', () => {
    const { serverMicros, brokerMicros, clientMicros, serverCores } = summarise(
      rounds.slice(0, 1),
      'ours',
    );
    expect([serverMicros, brokerMicros, clientMicros, serverCores]).toEqual([
      ...[1_250, null, 625, 0.5],
    ]);
  });

  test.each([
    [400, 'kept'],
    [399, 'MISSED'],
  ])('ours at %d of an echo of 1,000: %s', (perS, verdict) => {
    const summary = summarise([[runOf('echo', 1_000), runOf('ours', perS)]], 'ours');
    expect(verdictOf(summary)).toContain(verdict);
  });
});

describe('the ratios of ingest', () => {
  test('are to the echo and to the naive server', () => {
    expect(ratiosOf(true).map(({ name, valid }) => [name, valid])).toEqual([
      ['ours ÷ echo', true],
      ['ours ÷ naive', true],
      ['batch ÷ echo', true],
    ]);
  });

  test('all are invalid where the load client was late', () => {
    expect(ratiosOf(false).map(({ valid }) => valid)).toEqual([false, false, false]);
  });

  test('those of a target that failed are invalid', () => {
    const failing = [...rounds, [...rounds[0]!.slice(0, 3), runOf('batch', 9_000, { 503: 1 })]];
    expect(ratiosOf(true, failing).map(({ valid }) => valid)).toEqual([true, true, false]);
  });
});
