import type { Command } from 'commander';
import { table } from '../harness/columns.ts';
import { currentCommit } from '../harness/machine.ts';
import type { Baseline, ComparedResult, Ratio } from '../harness/ratios.ts';
import {
  baselineFile,
  newestResults,
  readBaseline,
  readResult,
  resultsFolder,
  writeBaseline,
} from '../harness/results.ts';
import type { Say } from '../harness/scenario.ts';

/** A ratio below this share of its baseline has fallen; runs differ by less. */
const SHARE_MIN = 0.85;

interface Flags {
  out: string;
  baseline: string;
  allowMissing?: true;
}

/** Adds `compare` and `accept` to the commands of the benchmarks. */
export function addCompareCommands(program: Command, say: Say): void {
  const add = (name: string, description: string, baseline: string) =>
    program
      .command(name)
      .description(description)
      .argument('[files...]', 'results; default: the newest of each benchmark in --out')
      .option('--out <dir>', 'folder of the results', resultsFolder)
      .option('--baseline <file>', baseline, baselineFile);
  const purpose = 'Fails where a ratio of the newest results fell under 0.85 × of the baseline.';
  add('compare', purpose, 'file with the baseline to compare with')
    .option('--allow-missing', 'do not fail for baseline ratios that a result does not have')
    .action((files: string[], flags: Flags) => runCompare(resultsOf(files, flags), flags, say));
  const effect = 'Makes the valid ratios of the newest results the baseline of their benchmarks.';
  add('accept', effect, 'file to write the baseline to').action((files: string[], flags: Flags) => {
    const results = resultsOf(files, flags);
    for (const { benchmark, ratios } of results) {
      const invalid = ratios.filter(({ valid }) => !valid);
      for (const { name } of invalid) say(`left out, INVALID: ${benchmark}: ${name}`);
    }
    writeBaseline(flags.baseline, withResults(readBaseline(flags.baseline), results));
    say(`written to ${flags.baseline}`);
  });
}

function runCompare(results: readonly ComparedResult[], flags: Flags, say: Say): void {
  const comparisons = compare(readBaseline(flags.baseline), results);
  process.stdout.write(`${comparisonLines(comparisons).join('\n')}\n`);
  for (const warning of notOfHead(results, currentCommit())) say(warning);
  const faults = comparisons.flatMap((one) => faultOf(one, flags.allowMissing) ?? []);
  for (const fault of faults) say(fault);
  const isKept = comparisons.some(({ verdict }) => verdict === 'kept');
  if (faults.length > 0 || !isKept) process.exitCode = 1;
  if (faults.length > 0) return;
  const none = 'Nothing could be compared: the baseline has none of these ratios.';
  say(isKept ? 'no ratio has fallen' : none);
}

function resultsOf(files: readonly string[], { out }: Flags): ComparedResult[] {
  const found = files.length > 0 ? files : newestResults(out);
  if (found.length > 0) return found.map(readResult);
  throw new Error(`No results in ${out}: run "npm run bench" first, or name the files.`);
}

function comparisonLines(comparisons: readonly Comparison[]): string[] {
  const figure = (ratio: number | null) => ratio?.toPrecision(3) ?? '';
  const share = ({ ratio, baseline }: Comparison) =>
    ratio === null || baseline === null ? '' : (ratio / baseline).toFixed(2);
  return table(
    comparisons,
    [
      ['benchmark', ({ benchmark }) => benchmark],
      ['at', ({ at }) => `${at.slice(0, 16)}Z`],
      ['commit', ({ commit }) => commit ?? ''],
      ['ratio', ({ name }) => name],
      ['now', ({ ratio }) => figure(ratio)],
      ['baseline', ({ baseline }) => figure(baseline)],
      ['×', share],
      ['', ({ verdict }) => verdict],
    ],
    4,
  );
}

/** One ratio of a result, or of the baseline of its benchmark. */
export interface Comparison {
  readonly benchmark: string;
  /** When the result was measured, and with which commit; null where unknown. */
  readonly at: string;
  readonly commit: string | null;
  readonly name: string;
  readonly verdict: 'kept' | 'fallen' | 'invalid' | 'missing' | 'new';
  readonly ratio: number | null;
  readonly baseline: number | null;
}

/**
 * Compares results with the baseline. Benchmarks without a result are left out; ratios of the
 * baseline that a run with other settings did not measure are `missing`.
 */
export function compare(baseline: Baseline, results: readonly ComparedResult[]): Comparison[] {
  return results.flatMap(({ benchmark, at, machine, ratios }) => {
    const of = { benchmark, at, commit: machine.commit ?? null };
    const known = baseline[benchmark]?.ratios ?? {};
    const measured = ratios.map((one) => {
      const base = Object.hasOwn(known, one.name) ? known[one.name]! : null;
      const verdict = verdictOf(one, base);
      return { ...of, name: one.name, ratio: one.ratio, baseline: base, verdict };
    });
    const names = new Set(ratios.map(({ name }) => name));
    const missing = Object.entries(known).flatMap(([name, baseline]) =>
      names.has(name) ? [] : [{ ...of, name, ratio: null, baseline, verdict: 'missing' as const }],
    );
    return [...measured, ...missing];
  });
}

function verdictOf({ ratio, valid }: Ratio, base: number | null): Comparison['verdict'] {
  if (base === null) return 'new';
  if (!valid || !Number.isFinite(ratio)) return 'invalid';
  return ratio < base * SHARE_MIN ? 'fallen' : 'kept';
}

/**
 * One line for a ratio that has fallen, or that the result cannot confirm.
 * @param allowMissing a run with other settings does not measure all ratios
 */
export function faultOf(comparison: Comparison, allowMissing = false): string | undefined {
  const { benchmark, name, verdict, ratio, baseline } = comparison;
  const what = `${benchmark}: ${name}`;
  if (verdict === 'fallen') {
    const share = (ratio! / baseline!).toFixed(2);
    return `FALLEN ${what} is ${rounded(ratio!)}, ${share} × of the baseline's ${rounded(baseline!)} (at least ${SHARE_MIN} × is needed).`;
  }
  if (verdict === 'invalid') {
    return `INVALID ${what}: this run proves nothing; run it again on an otherwise idle machine.`;
  }
  if (verdict === 'missing' && !allowMissing) {
    return `MISSING ${what}: the result does not contain it; run the whole benchmark, or pass --allow-missing.`;
  }
  return undefined;
}

/**
 * One line for each result that was not measured with the commit of the working tree.
 * @param head as a result's `machine.commit` has it
 */
export function notOfHead(results: readonly ComparedResult[], head: string | null): string[] {
  return results.flatMap(({ benchmark, machine: { commit } }) => {
    // Two working trees with changes have the same name but may differ.
    if (commit && !commit.endsWith('+') && commit === head) return [];
    const measured = commit ?? 'an unknown commit';
    return [`WARNING ${benchmark}: measured with ${measured}, not ${head ?? 'HEAD'}.`];
  });
}

/**
 * The baseline with these results in place of the old entries of their benchmarks. Invalid ratios
 * are left out; a benchmark without a valid ratio keeps its old entry.
 */
export function withResults(baseline: Baseline, results: readonly ComparedResult[]): Baseline {
  const entries = results.flatMap(({ benchmark, at, machine, ratios }) => {
    const valid = ratios.filter((one) => one.valid && Number.isFinite(one.ratio));
    if (valid.length === 0) return [];
    const byName = Object.fromEntries(valid.map(({ name, ratio }) => [name, rounded(ratio)]));
    return [[benchmark, { at, machine, ratios: byName }] as const];
  });
  return { ...baseline, ...Object.fromEntries(entries) };
}

function rounded(ratio: number): number {
  return Number(ratio.toPrecision(3));
}
