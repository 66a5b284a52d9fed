import type { Command } from 'commander';
import { alignedLines } from '../aligned-lines.ts';
import { currentCommit } from '../machine.ts';
import {
  baselineFile,
  newestResults,
  readBaseline,
  readResult,
  resultsFolder,
  writeBaseline,
} from '../results.ts';
import { type Comparison, compare, faultOf, notOfHead, withResults } from './compare.ts';

interface Flags {
  out: string;
  baseline: string;
  allowMissing?: true;
}

/** Adds `compare` and `accept` to the benchmarks' commands. */
export function addCompareCommands(program: Command, say: (line: string) => void): void {
  program
    .command('compare')
    .description('Fails where a ratio of the newest results fell under 0.85 × of the baseline.')
    .argument('[files...]', 'results; default: the newest of each benchmark in --out')
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .option('--baseline <file>', 'what they are compared with', baselineFile)
    .option('--allow-missing', 'ratios of the baseline that a result does not have are no fault')
    .action((files: string[], flags: Flags) => {
      const results = resultsOf(files, flags).map(readResult);
      const comparisons = compare(readBaseline(flags.baseline), results);
      process.stdout.write(`${comparisonTable(comparisons)}\n`);
      for (const warning of notOfHead(results, currentCommit())) say(warning);
      const faults = comparisons
        .map((one) => faultOf(one, flags.allowMissing))
        .filter((fault) => fault !== undefined);
      for (const fault of faults) say(fault);
      if (faults.length > 0) process.exitCode = 1;
      else if (comparisons.some(({ verdict }) => verdict === 'kept')) say('no ratio has fallen');
      else {
        say('Nothing could be compared: the baseline has none of these ratios.');
        process.exitCode = 1;
      }
    });
  program
    .command('accept')
    .description('Makes the valid ratios of the newest results the baseline of their benchmarks.')
    .argument('[files...]', 'results; default: the newest of each benchmark in --out')
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .option('--baseline <file>', 'where it is written', baselineFile)
    .action((files: string[], flags: Flags) => {
      const results = resultsOf(files, flags).map(readResult);
      for (const { benchmark, ratios } of results) {
        for (const { name, valid } of ratios) {
          if (!valid) say(`left out, INVALID: ${benchmark}: ${name}`);
        }
      }
      writeBaseline(flags.baseline, withResults(readBaseline(flags.baseline), results));
      say(`written to ${flags.baseline}`);
    });
}

function resultsOf(files: readonly string[], { out }: Flags): readonly string[] {
  const found = files.length > 0 ? files : newestResults(out);
  if (found.length > 0) return found;
  throw new Error(`No results in ${out}: run "npm run bench" first, or name the files.`);
}

function comparisonTable(comparisons: readonly Comparison[]): string {
  const figure = (ratio: number | null) => ratio?.toPrecision(3) ?? '';
  const rows = comparisons.map(({ benchmark, at, commit, name, ratio, baseline, verdict }) => {
    const share = ratio === null || baseline === null ? '' : (ratio / baseline).toFixed(2);
    const of = [benchmark, `${at.slice(0, 16)}Z`, commit ?? ''];
    return [...of, name, figure(ratio), figure(baseline), share, verdict];
  });
  const head = ['benchmark', 'at', 'commit', 'ratio', 'now', 'baseline', '×', ''];
  return alignedLines([head, ...rows], 4).join('\n');
}
