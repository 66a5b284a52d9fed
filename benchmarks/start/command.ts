import type { Command } from 'commander';
import { whole } from '../../lib/flags.ts';
import { alignedLines } from '../aligned-lines.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { STEPS } from './plan.ts';
import { measureStart, type StartOptions, type StartResult } from './start.ts';

interface Flags {
  rounds: number;
  out: string;
}

export const START_ROUNDS = 3;

/** Adds `start` to the benchmarks' commands. */
export function addStartCommand(program: Command, say: (line: string) => void): void {
  program
    .command('start')
    .description('From the command "npm start" to the first pill in a socket, cold and warm.')
    .option('--rounds <n>', 'starts of each kind', whole(1, 100), START_ROUNDS)
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .action(async ({ rounds, out }: Flags) => {
      const { table } = await runStart({ rounds, say }, out);
      process.stdout.write(`${table}\n`);
    });
}

/** Measures and writes the result. */
export async function runStart(options: StartOptions, out: string) {
  const result = await measureStart(options);
  // Seconds alone: nothing in a start is a yardstick for the rest, so none of it is compared.
  for (const file of await writeResult(out, result, { ratios: [] }))
    options.say(`written to ${file}`);
  return { table: startTable(result), isGood: true };
}

function startTable({ machine, summaries }: StartResult): string {
  const { cpu, cores, node, loadBefore } = machine;
  const s = (ms: number) => (ms / 1_000).toFixed(1);
  return [
    `${cores} × ${cpu}, Node ${node}, load before ${loadBefore.toFixed(1)}`,
    'From "npm start" to the first pill of the demo market in a socket, s, medians; no downloads',
    ...alignedLines([
      ['start', 'rounds', 'first pill', 'min', 'max', ...STEPS, ''],
      ...summaries.map(({ kind, rounds, wholeMs, wholeMinMs, wholeMaxMs, steps }) => [
        ...[kind, String(rounds), s(wholeMs), s(wholeMinMs), s(wholeMaxMs)],
        ...[...STEPS.map((step) => s(steps[step])), ''],
      ]),
    ]),
  ].join('\n');
}
