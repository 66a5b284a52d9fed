import { type Command, InvalidArgumentError } from 'commander';
import { rising, whole } from '../../lib/flags.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { webhooksExtras, webhooksTable } from './table.ts';
import { isProof, measureWebhooks, SCENARIOS, type Scenario } from './webhooks.ts';

interface Flags {
  scenarios: Scenario[];
  seconds: number;
  warmUp: number;
  fanRates: number[];
  endpoints: number;
  rounds: number;
  outageSeconds: number;
  drainMaxSeconds: number;
  out: string;
}

/** Adds `webhooks` to the benchmarks' commands. */
export function addWebhooksCommand(program: Command, say: (line: string) => void): void {
  program
    .command('webhooks')
    .description('From ingest to a receiver: latency, fan, a hanging neighbour, an outage drained.')
    .option('--scenarios <list>', `of ${SCENARIOS.join(', ')}`, scenarios, [...SCENARIOS])
    .option('--seconds <n>', 'length of each run', whole(1, 300), 30)
    .option('--warm-up <n>', 'seconds of load before, not counted', whole(0, 300), 15)
    .option(
      '--fan-rates <list>',
      'pills a second, rising',
      rising(1, 1_000),
      [10, 25, 50, 100, 200],
    )
    .option('--endpoints <n>', 'of fan and slow-neighbour', whole(2, 200), 50)
    .option('--rounds <n>', 'of slow-neighbour', whole(1, 20), 3)
    .option('--outage-seconds <n>', 'of drain', whole(1, 300), 30)
    .option('--drain-max-seconds <n>', 'until nothing waits, at most', whole(1, 3_600), 420)
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .action(async ({ warmUp, out, ...flags }: Flags) => {
      const result = await measureWebhooks({ ...flags, warmUpSeconds: warmUp, say });
      process.stdout.write(`${webhooksTable(result)}\n`);
      for (const file of await writeResult(out, result, webhooksExtras(result))) {
        say(`written to ${file}`);
      }
      if (!isProof(result)) process.exitCode = 1;
    });
}

function scenarios(text: string): Scenario[] {
  return text.split(',').map((name) => {
    const known = SCENARIOS.find((scenario) => scenario === name);
    if (known !== undefined) return known;
    throw new InvalidArgumentError(`Give some of ${SCENARIOS.join(', ')}, by commas.`);
  });
}
