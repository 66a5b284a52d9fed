import type { Command } from 'commander';
import { rising, whole } from '../../lib/flags.ts';
import { isProof, measureAccess } from '../access.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { accessExtras, accessTable } from './table.ts';

interface Flags {
  rounds: number;
  seconds: number;
  warmUp: number;
  openSeconds: number;
  connections: number;
  sizes: number[];
  lookUps: number;
  out: string;
}

/** Adds `access` to the benchmarks' commands. */
export function addAccessCommand(program: Command, say: (line: string) => void): void {
  program
    .command('access')
    .description('What key, quota and limits cost a read, against the same route without them.')
    .option('--rounds <n>', 'rounds of the closed loop', whole(1, 1_000), 5)
    .option('--seconds <n>', 'length of each of its runs', whole(1, 3_600), 5)
    .option('--warm-up <n>', 'seconds on each target before, not counted', whole(0, 600), 8)
    .option('--open-seconds <n>', 'length of each run of the open loop', whole(1, 3_600), 20)
    .option('--connections <n>', 'keep-alive connections', whole(1, 1_000), 50)
    .option(
      '--sizes <list>',
      'keys in the table, rising',
      rising(1, 10_000_000),
      [1, 10_000, 1_000_000],
    )
    .option('--look-ups <n>', 'keys to look up at each size', whole(1, 5_000), 500)
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .action(async ({ out, ...flags }: Flags) => {
      const result = await measureAccess({ ...flags, warmUpSeconds: flags.warmUp, say });
      process.stdout.write(`${accessTable(result)}\n`);
      for (const file of await writeResult(out, result, accessExtras(result))) {
        say(`written to ${file}`);
      }
      if (!isProof(result)) process.exitCode = 1;
    });
}
