import type { Command } from 'commander';
import { whole } from '../../lib/flags.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { type IngestOptions, isProof, measureIngest } from './ingest.ts';
import { ingestExtras, ingestTable } from './table.ts';

interface Flags {
  rounds: number;
  seconds: number;
  warmUp: number;
  openSeconds: number;
  profileSeconds: number;
  connections: number;
  out: string;
}

export const INGEST_DEFAULTS = {
  ...{ rounds: 3, seconds: 8, warmUpSeconds: 10 },
  ...{ openSeconds: 20, profileSeconds: 8, connections: 50 },
} as const satisfies Omit<IngestOptions, 'say'>;

/** Adds `ingest` to the benchmarks' commands. */
export function addIngestCommand(program: Command, say: (line: string) => void): void {
  const d = INGEST_DEFAULTS;
  program
    .command('ingest')
    .description('Pills a second of one ingest process on one core, beside a bare Fastify echo.')
    .option('--rounds <n>', 'rounds of the closed loop', whole(1, 1_000), d.rounds)
    .option('--seconds <n>', 'length of each of its runs', whole(1, 3_600), d.seconds)
    .option('--warm-up <n>', 'seconds on each target before', whole(0, 600), d.warmUpSeconds)
    .option('--open-seconds <n>', 'length of each open loop', whole(1, 3_600), d.openSeconds)
    .option('--profile-seconds <n>', 'of each profile; 0: none', whole(0, 60), d.profileSeconds)
    .option('--connections <n>', 'keep-alive connections', whole(1, 1_000), d.connections)
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .action(async ({ warmUp, out, ...flags }: Flags) => {
      const { table, isGood } = await runIngest({ ...flags, warmUpSeconds: warmUp, say }, out);
      process.stdout.write(`${table}\n`);
      if (!isGood) process.exitCode = 1;
    });
}

/** Measures and writes the result. */
export async function runIngest(options: IngestOptions, out: string) {
  const result = await measureIngest(options);
  for (const file of await writeResult(out, result, ingestExtras(result))) {
    options.say(`written to ${file}`);
  }
  return { table: ingestTable(result), isGood: isProof(result) };
}
