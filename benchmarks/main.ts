import { Command } from 'commander';
import { ACCESS } from './access/access-bench.ts';
import { ANALYTICS } from './analytics/analytics-bench.ts';
import { BULK } from './bulk/bulk-bench.ts';
import { EXPORTS } from './bulk/exports-bench.ts';
import { CLIENTS } from './clients/clients-bench.ts';
import { addCompareCommands } from './compare/compare.ts';
import { CONSOLE } from './console/console-bench.ts';
import { DEDICATED } from './dedicated/dedicated-bench.ts';
import { END_TO_END } from './end-to-end/end-to-end-bench.ts';
import { FANOUT } from './fanout/fanout-bench.ts';
import { addAll, addScenario } from './harness/scenario.ts';
import { INGEST } from './ingest/ingest-bench.ts';
import { SCALING } from './scaling/scaling-bench.ts';
import { START } from './start/start-bench.ts';
import { TURNS } from './turns/turns-bench.ts';
import { WEBHOOKS } from './webhooks/webhooks-bench.ts';

const say = (line: string) => process.stderr.write(`[bench] ${line}\n`);
const program = new Command('bench').description('Benchmarks; see benchmarks/README.md.');

const endToEnd = { scenario: END_TO_END, overrides: { ownStack: true } };
addAll(program, [{ scenario: INGEST }, endToEnd, { scenario: START }], say);
for (const scenario of [INGEST, END_TO_END, START]) addScenario(program, scenario, say);
addCompareCommands(program, say);
const further = [
  ACCESS,
  FANOUT,
  ANALYTICS,
  BULK,
  CLIENTS,
  CONSOLE,
  DEDICATED,
  EXPORTS,
  SCALING,
  TURNS,
  WEBHOOKS,
];
for (const scenario of further) {
  addScenario(program, scenario, say);
}

try {
  await program.parseAsync();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
