import { Command } from 'commander';
import { readDemoKeys } from '../lib/demo-keys.ts';
import { readStackFile, type StackFile } from '../lib/stack-file.ts';
import { accessTable } from './access/table.ts';
import { isProof, measureAccess } from './access.ts';
import { addAnalyticsCommand } from './analytics/command.ts';
import { addDedicatedCommand } from './dedicated/command.ts';
import { isClean, measureEndToEnd } from './end-to-end/end-to-end.ts';
import { endToEndTable } from './end-to-end/table.ts';
import { addFanoutCommand } from './fanout/command.ts';
import { rising, whole } from './flags.ts';
import { startOwnStack } from './own-stack.ts';
import { resultsFolder, writeResult } from './results.ts';

interface Flags {
  rates: number[];
  seconds: number;
  warmUp: number;
  clients: number;
  symbols: number;
  connections: number;
  out: string;
  stack?: string;
  ownStack?: boolean;
  ingest?: string;
  stream?: string;
  kafka?: string;
  registry?: string;
  namespace: string;
}

const say = (line: string) => process.stderr.write(`[bench] ${line}\n`);

const program = new Command('bench').description('Benchmarks; see benchmarks/README.md.');

program
  .command('end-to-end')
  .description('Open loop: POST→ok, POST→socket and produce→socket, timed from the planned send.')
  .option('--rates <list>', 'pills a second, e.g. 100,1000', rates, [100, 1_000])
  .option('--seconds <n>', 'length of each run', whole(1, 3_600), 20)
  .option('--warm-up <n>', 'seconds of load before, not counted', whole(0, 600), 20)
  .option('--clients <n>', 'sockets, each on all symbols', whole(1, 1_000), 10)
  .option('--symbols <n>', 'symbols BENCH.0, BENCH.1, …', whole(1, 10_000), 50)
  .option('--connections <n>', 'keep-alive connections to ingest', whole(1, 1_000), 64)
  .option('--out <dir>', 'folder of the JSON result', resultsFolder)
  .option('--stack <file>', 'addresses of a running stack; default .local/stack.json')
  .option('--own-stack', 'start a stack for this, with data of its own, and stop it')
  .option('--ingest <url>', 'instead of the stack file')
  .option('--stream <url>', 'instead of the stack file')
  .option('--kafka <brokers>', 'instead of the stack file')
  .option('--registry <url>', 'instead of the stack file')
  .option('--namespace <name>', 'PILLOLE_NAMESPACE of the stack', '')
  .action(async (flags: Flags) => {
    const own = flags.ownStack === true ? await startOwnStack(say) : undefined;
    try {
      const result = await measureEndToEnd({
        ...flags,
        warmUpSeconds: flags.warmUp,
        stack: own?.stack ?? addresses(flags),
        credential: process.env.INGEST_CREDENTIAL,
        apiKey:
          process.env.PILLOLE_API_KEY ?? readDemoKeys(own?.stackFile ?? flags.stack).institutional,
        say,
      });
      process.stdout.write(`${endToEndTable(result)}\n`);
      say(`written to ${writeResult(flags.out, result)}`);
      if (!result.runs.every(isClean)) process.exitCode = 1;
    } finally {
      await own?.stop();
    }
  });

interface AccessFlags {
  rounds: number;
  seconds: number;
  warmUp: number;
  openSeconds: number;
  connections: number;
  sizes: number[];
  lookUps: number;
  out: string;
}

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
  .option('--out <dir>', 'folder of the JSON result', resultsFolder)
  .action(async (flags: AccessFlags) => {
    const result = await measureAccess({
      ...flags,
      warmUpSeconds: flags.warmUp,
      say,
    });
    process.stdout.write(`${accessTable(result)}\n`);
    say(`written to ${writeResult(flags.out, result)}`);
    if (!isProof(result)) process.exitCode = 1;
  });

addFanoutCommand(program, say);
addAnalyticsCommand(program, say);
addDedicatedCommand(program, say);

function addresses(flags: Flags): Pick<StackFile, 'ingest' | 'stream' | 'kafka' | 'registry'> {
  const { ingest, stream, kafka, registry } = flags;
  const isWhole = ingest && stream && kafka && registry;
  const stack = isWhole ? undefined : readStackFile(flags.stack);
  return {
    ingest: ingest ?? stack!.ingest,
    stream: stream ?? stack!.stream,
    kafka: kafka ?? stack!.kafka,
    registry: registry ?? stack!.registry,
  };
}

function rates(text: string): number[] {
  return text.split(',').map(whole(1, 100_000));
}

try {
  await program.parseAsync();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
