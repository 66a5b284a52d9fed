import type { Command } from 'commander';
import { whole } from '../../lib/flags.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { measureDedicated } from './dedicated.ts';
import { dedicatedExtras, dedicatedTable, isProof } from './table.ts';

interface Flags {
  rate: number;
  seconds: number;
  rounds: number;
  sockets: number;
  slowReaders: number;
  proNice: number;
  out: string;
}

/** Adds `dedicated` to the benchmarks' commands. */
export function addDedicatedCommand(program: Command, say: (line: string) => void): void {
  program
    .command('dedicated')
    .description('p99 of a dedicated client while the Pro process is idle, overloaded, killed.')
    .option('--rate <n>', 'pills a second', whole(1, 10_000), 200)
    .option('--seconds <n>', 'length of each cell', whole(1, 3_600), 10)
    .option('--rounds <n>', 'times everything is measured', whole(1, 100), 3)
    .option('--sockets <n>', 'Pro sockets on all symbols', whole(1, 900), 500)
    .option('--slow-readers <n>', 'Pro sockets that never read', whole(1, 100), 20)
    .option('--pro-nice <n>', 'priority of the Pro process, 0 to 19', whole(0, 19), 0)
    .option('--out <dir>', 'folder of the JSON result', resultsFolder)
    .action(async ({ rate, sockets, out, ...rest }: Flags) => {
      const result = await measureDedicated({ ...rest, perS: rate, proSockets: sockets, say });
      process.stdout.write(`${dedicatedTable(result)}\n`);
      for (const file of await writeResult(out, result, dedicatedExtras(result))) {
        say(`written to ${file}`);
      }
      if (!isProof(result)) process.exitCode = 1;
    });
}
