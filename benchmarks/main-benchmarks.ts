import type { Command } from 'commander';
import { whole } from '../lib/flags.ts';
import { runEndToEndByDefault } from './end-to-end/command.ts';
import { INGEST_DEFAULTS, runIngest } from './ingest/command.ts';
import { resultsFolder } from './results.ts';
import { runStart, START_ROUNDS } from './start/command.ts';

interface Flags {
  seconds?: number;
  rounds: number;
  out: string;
}

interface Outcome {
  readonly table: string;
  readonly isGood: boolean;
}

/** Adds `all`, which runs without a command: ingest, end-to-end and start, one after the other. */
export function addMainBenchmarks(program: Command, say: (line: string) => void): void {
  program
    .command('all', { isDefault: true })
    .description('ingest, end-to-end and start, each on engines of its own; tables at the end.')
    .option('--seconds <n>', 'length of each run, warm-up and profile', whole(1, 3_600))
    .option('--rounds <n>', 'rounds of ingest and start', whole(1, 100), START_ROUNDS)
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .allowExcessArguments()
    .action(async ({ seconds, rounds, out }: Flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw new Error(noBenchmark(unknown, program));
      const benchmarks: Readonly<Record<string, () => Promise<Outcome>>> = {
        ingest: () => runIngest({ ...ingestOptions(seconds), rounds, say }, out),
        'end-to-end': () => runEndToEndByDefault({ seconds, out }, say),
        start: () => runStart({ rounds, say }, out),
      };
      const tables: string[] = [];
      for (const [name, run] of Object.entries(benchmarks)) {
        say(`${name} (${tables.length + 1} of ${Object.keys(benchmarks).length})`);
        try {
          const { table, isGood } = await run();
          tables.push(`${name}\n${table}`);
          if (!isGood) process.exitCode = 1;
        } catch (error) {
          // The others are measured all the same.
          tables.push(`${name}\nfailed: ${(error as Error).message}`);
          process.exitCode = 1;
        }
      }
      process.stdout.write(`${tables.join('\n\n\n')}\n`);
      say('"npm run bench -- compare" judges the ratios by the baseline');
    });
}

/** A word that names no command comes to the default one. */
function noBenchmark(word: string, { commands }: Command): string {
  const names = commands.map((command) => command.name()).join(', ');
  return `There is no benchmark "${word}": name one of ${names}, or none to run ingest, end-to-end and start.`;
}

function ingestOptions(seconds: number | undefined) {
  if (seconds === undefined) return INGEST_DEFAULTS;
  const lengths = {
    seconds,
    warmUpSeconds: seconds,
    openSeconds: seconds,
    profileSeconds: seconds,
  };
  return { ...INGEST_DEFAULTS, ...lengths };
}
