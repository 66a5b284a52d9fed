import type { Baseline, BaselineOfBenchmark, ComparedResult, Ratio } from './ratio.ts';

/** Below this share of its baseline a ratio has fallen; less is what runs differ by. */
export const SHARE_MIN = 0.85;

export type Verdict = 'kept' | 'fallen' | 'invalid' | 'missing' | 'new';

/** One ratio of a result, or of the baseline of its benchmark. */
export interface Comparison {
  readonly benchmark: string;
  /** When and with which commit the result was measured; null where nobody knows. */
  readonly at: string;
  readonly commit: string | null;
  readonly name: string;
  readonly verdict: Verdict;
  readonly ratio: number | null;
  readonly baseline: number | null;
}

/**
 * Compares results with the baseline. Benchmarks without a result are left out; so are, as
 * `missing`, ratios of the baseline that a run with other settings did not measure.
 */
export function compare(baseline: Baseline, results: readonly ComparedResult[]): Comparison[] {
  return results.flatMap(({ benchmark, at, machine, ratios }) => {
    const of = { benchmark, at, commit: machine.commit ?? null };
    const known = baseline[benchmark]?.ratios ?? {};
    const measured = ratios.map(({ name, ratio, valid }) => {
      const base = Object.hasOwn(known, name) ? known[name]! : null;
      return { ...of, name, ratio, baseline: base, verdict: verdictOf(ratio, valid, base) };
    });
    const names = new Set(ratios.map(({ name }) => name));
    const missing = Object.entries(known)
      .filter(([name]) => !names.has(name))
      .map(([name, base]) => {
        return { ...of, name, ratio: null, baseline: base, verdict: 'missing' as const };
      });
    return [...measured, ...missing];
  });
}

function verdictOf(ratio: number, valid: boolean, base: number | null): Verdict {
  if (base === null) return 'new';
  if (!valid || !Number.isFinite(ratio)) return 'invalid';
  return ratio < base * SHARE_MIN ? 'fallen' : 'kept';
}

/**
 * One line for a ratio that has fallen, or cannot be told to have held.
 * @param allowMissing a run with other settings does not measure all
 */
export function faultOf(
  { benchmark, name, verdict, ratio, baseline }: Comparison,
  allowMissing = false,
): string | undefined {
  const what = `${benchmark}: ${name}`;
  if (verdict === 'fallen') {
    const share = (ratio! / baseline!).toFixed(2);
    return `FALLEN ${what} is ${figure(ratio!)}, ${share} × of the baseline's ${figure(baseline!)} (at least ${SHARE_MIN} × is needed).`;
  }
  if (verdict === 'invalid') {
    return `INVALID ${what}: this run proves nothing; run it again with nothing else at work.`;
  }
  if (verdict === 'missing' && !allowMissing) {
    return `MISSING ${what}: the result does not have it; run the benchmark whole, or say --allow-missing.`;
  }
  return undefined;
}

/**
 * One line for each result that was not measured with what the working tree has now.
 * @param head as `Machine.commit` has it
 */
export function notOfHead(results: readonly ComparedResult[], head: string | null): string[] {
  return results.flatMap(({ benchmark, machine: { commit } }) => {
    // With changes two working trees are of one name and may differ.
    if (commit && !commit.endsWith('+') && commit === head) return [];
    return [
      `WARNING ${benchmark}: measured with ${commit ?? 'no known commit'}, not ${head ?? 'HEAD'}.`,
    ];
  });
}

/**
 * The baseline with these results in the place of what it had of their benchmarks. Invalid ratios
 * never enter; a benchmark that has no valid one keeps its old entry.
 */
export function withResults(baseline: Baseline, results: readonly ComparedResult[]): Baseline {
  const entries = results.flatMap(({ benchmark, at, machine, ratios }) => {
    const valid = ratios.filter((one) => one.valid && Number.isFinite(one.ratio));
    if (valid.length === 0) return [];
    const entry: BaselineOfBenchmark = {
      ...{ at, machine },
      ratios: Object.fromEntries(valid.map((one) => [one.name, rounded(one)])),
    };
    return [[benchmark, entry] as const];
  });
  return { ...baseline, ...Object.fromEntries(entries) };
}

function rounded({ ratio }: Ratio): number {
  return Number(ratio.toPrecision(3));
}

function figure(ratio: number): string {
  return String(Number(ratio.toPrecision(3)));
}
