import { Command } from 'commander';
import { addAccessCommand } from './access/command.ts';
import { addAnalyticsCommand } from './analytics/command.ts';
import { addCompareCommands } from './compare/command.ts';
import { addDedicatedCommand } from './dedicated/command.ts';
import { addEndToEndCommand } from './end-to-end/command.ts';
import { addFanoutCommand } from './fanout/command.ts';
import { addIngestCommand } from './ingest/command.ts';
import { addMainBenchmarks } from './main-benchmarks.ts';
import { addStartCommand } from './start/command.ts';
import { addWebhooksCommand } from './webhooks/command.ts';

const say = (line: string) => process.stderr.write(`[bench] ${line}\n`);

const program = new Command('bench').description('Benchmarks; see benchmarks/README.md.');

addMainBenchmarks(program, say);
addIngestCommand(program, say);
addEndToEndCommand(program, say);
addStartCommand(program, say);
addCompareCommands(program, say);
addAccessCommand(program, say);
addFanoutCommand(program, say);
addAnalyticsCommand(program, say);
addDedicatedCommand(program, say);
addWebhooksCommand(program, say);

try {
  await program.parseAsync();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
