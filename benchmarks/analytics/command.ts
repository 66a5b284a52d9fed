import type { Command } from 'commander';
import { rising, whole } from '../../lib/flags.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { isClean, measureAnalytics } from './analytics.ts';
import { analyticsExtras } from './ratios.ts';
import { analyticsTable } from './table.ts';

interface Flags {
  sinkPills: number;
  sizes: number[];
  perS: number;
  verifyPerS: number;
  seconds: number;
  out: string;
}

/** Adds `analytics` to the benchmarks' commands. */
export function addAnalyticsCommand(program: Command, say: (line: string) => void): void {
  program
    .command('analytics')
    .description('Rows a second of the sink; bars and summaries of a day; bytes a pill on disk.')
    .option('--sink-pills <n>', 'pills in the log for the sink', whole(10_000, 10_000_000), 500_000)
    .option(
      '--sizes <list>',
      'pills in the table, rising',
      rising(1_000, 100_000_000),
      [1_000_000, 10_000_000],
    )
    .option('--per-s <n>', 'questions a second, open loop', whole(1, 1_000), 10)
    .option('--verify-per-s <n>', 'questions of market verify a second', whole(1, 1_000), 100)
    .option('--seconds <n>', 'length of each run', whole(1, 3_600), 15)
    .option('--out <dir>', 'folder of the JSON result', resultsFolder)
    .action(async ({ out, ...flags }: Flags) => {
      const result = await measureAnalytics({ ...flags, say });
      process.stdout.write(`${analyticsTable(result)}\n`);
      for (const file of await writeResult(out, result, analyticsExtras(result))) {
        say(`written to ${file}`);
      }
      if (!isClean(result)) process.exitCode = 1;
    });
}
