import { describe, expect, test } from 'vitest';
import type { Baseline, ComparedResult, Ratio } from '../harness/ratios.ts';
import { compare, faultOf, notOfHead, withResults } from './compare.ts';

const machine = { cpu: 'one', commit: 'abc1234' };
const baseline: Baseline = {
  ingest: { at: '2026-01-01', machine, ratios: { 'ours ÷ echo': 0.4, 'batch ÷ echo': 2 } },
  start: { at: '2026-01-01', machine, ratios: { cold: 0.5 } },
};

function result(...ratios: Ratio[]): ComparedResult {
  return { benchmark: 'ingest', at: '2026-02-02', machine, ratios };
}

const ours = (ratio: number, valid = true) => ({ name: 'ours ÷ echo', ratio, valid });
const batch = { name: 'batch ÷ echo', ratio: 2, valid: true };

describe('a ratio against its baseline', () => {
  test.each([
    [0.4, true, 'kept'],
    [4, true, 'kept'],
    [0.35, true, 'kept'],
    [0.34, true, 'kept'], // 0.85 × exactly
    [0.339, true, 'fallen'],
    [0, true, 'fallen'],
    [Number.NaN, true, 'invalid'],
    [0.4, false, 'invalid'],
    [0.1, false, 'invalid'],
  ])('%d (valid: %s) is %s', (ratio, valid, verdict) => {
    const [first] = compare(baseline, [result(ours(ratio, valid), batch)]);
    expect(first).toMatchObject({ name: 'ours ÷ echo', verdict, baseline: 0.4 });
  });

  test('a ratio without a baseline is new, a ratio that the run did not measure is missing', () => {
    const unknown = { name: 'toString', ratio: 1, valid: true };
    expect(compare(baseline, [result(ours(1), unknown)]).map((one) => one.verdict)).toEqual([
      'kept',
      'new',
      'missing',
    ]);
  });

  test('a benchmark without a result is not judged', () => {
    expect(compare(baseline, [])).toEqual([]);
  });

  test('a ratio that fell has one line with both figures; other ratios have none', () => {
    const [fallen, kept] = compare(baseline, [result(ours(0.2), batch)]);
    expect(faultOf(fallen!)).toBe(
      "FALLEN ingest: ours ÷ echo is 0.2, 0.50 × of the baseline's 0.4 (at least 0.85 × is needed).",
    );
    expect(faultOf(kept!)).toBeUndefined();
  });

  test('a missing ratio fails the comparison, unless missing ratios are allowed', () => {
    const missing = compare(baseline, [result(ours(1))]).at(-1)!;
    expect(missing).toMatchObject({ verdict: 'missing', at: '2026-02-02', commit: 'abc1234' });
    expect(faultOf(missing)).toMatch(/^MISSING ingest: batch ÷ echo: .*--allow-missing\.$/);
    expect(faultOf(missing, true)).toBeUndefined();
  });

  test.each([
    ['abc1234', 'abc1234', []],
    ['abc1234', 'def5678', ['WARNING ingest: measured with abc1234, not def5678.']],
    ['abc1234', 'abc1234+', ['WARNING ingest: measured with abc1234, not abc1234+.']],
    ['abc1234+', 'abc1234+', ['WARNING ingest: measured with abc1234+, not abc1234+.']],
    [null, 'abc1234', ['WARNING ingest: measured with an unknown commit, not abc1234.']],
  ])('a result of %s at HEAD %s: %j', (commit, head, warnings) => {
    expect(notOfHead([{ ...result(ours(1)), machine: { commit } }], head)).toEqual(warnings);
  });
});

describe('a new baseline', () => {
  test('replaces the ratios of a benchmark by its valid new ones only', () => {
    const made = withResults(baseline, [result(ours(0.51239), { ...batch, valid: false })]);
    expect(made.ingest).toEqual({ at: '2026-02-02', machine, ratios: { 'ours ÷ echo': 0.512 } });
    expect(made.start).toBe(baseline.start);
  });

  test('keeps the old entry of a benchmark without a valid ratio', () => {
    expect(withResults(baseline, [result(ours(9, false))])).toEqual(baseline);
  });
});
