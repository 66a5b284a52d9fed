import type { Command } from 'commander';
import { readDemoKeys } from '../../lib/demo-keys.ts';
import { whole } from '../../lib/flags.ts';
import { defaultStackFile, readStackFile, type StackFile } from '../../lib/stack-file.ts';
import { startOwnStack } from '../own-stack.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { isClean, measureEndToEnd } from './end-to-end.ts';
import { endToEndExtras } from './ratios.ts';
import { endToEndTable } from './table.ts';

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

const DEFAULTS = {
  ...{ rates: [100, 1_000], seconds: 20, warmUp: 20, clients: 10 },
  ...{ symbols: 50, connections: 64, namespace: '' },
} as const;

/** Adds `end-to-end` to the benchmarks' commands. */
export function addEndToEndCommand(program: Command, say: (line: string) => void): void {
  const d = DEFAULTS;
  program
    .command('end-to-end')
    .description('Open loop: POST→ok, POST→socket and produce→socket, timed from the planned send.')
    .option('--rates <list>', 'pills a second, e.g. 100,1000', rates, [...d.rates])
    .option('--seconds <n>', 'length of each run', whole(1, 3_600), d.seconds)
    .option('--warm-up <n>', 'seconds of load before, not counted', whole(0, 600), d.warmUp)
    .option('--clients <n>', 'sockets, each on all symbols', whole(1, 1_000), d.clients)
    .option('--symbols <n>', 'symbols BENCH.0, BENCH.1, …', whole(1, 10_000), d.symbols)
    .option('--connections <n>', 'keep-alive connections', whole(1, 1_000), d.connections)
    .option('--out <dir>', 'folder of the results', resultsFolder)
    .option('--stack <file>', 'addresses of a running stack; default .local/stack.json')
    .option('--own-stack', 'start a stack for this, with data of its own, and stop it')
    .option('--ingest <url>', 'instead of the stack file')
    .option('--stream <url>', 'instead of the stack file')
    .option('--kafka <brokers>', 'instead of the stack file')
    .option('--registry <url>', 'instead of the stack file')
    .option('--namespace <name>', 'PILLOLE_NAMESPACE of the stack', d.namespace)
    .action(async (flags: Flags) => {
      const { table, isGood } = await runEndToEnd(flags, say);
      process.stdout.write(`${table}\n`);
      if (!isGood) process.exitCode = 1;
    });
}

/** Measures as by default, on a stack of its own, and writes the result. */
export function runEndToEndByDefault(
  { seconds, out }: { readonly seconds?: number | undefined; readonly out: string },
  say: (line: string) => void,
) {
  const length = seconds === undefined ? {} : { seconds, warmUp: seconds };
  return runEndToEnd(
    { ...DEFAULTS, rates: [...DEFAULTS.rates], ownStack: true, out, ...length },
    say,
  );
}

async function runEndToEnd(flags: Flags, say: (line: string) => void) {
  const own = flags.ownStack === true ? await startOwnStack(say) : undefined;
  try {
    const addresses = own === undefined ? addressesOf(flags) : own;
    const { stack, stackFile } = addresses;
    const result = await measureEndToEnd({
      ...flags,
      ...{ warmUpSeconds: flags.warmUp, stack, stackFile },
      credential: process.env.INGEST_CREDENTIAL,
      apiKey: process.env.PILLOLE_API_KEY ?? readDemoKeys(stackFile ?? flags.stack).institutional,
      say,
    });
    for (const file of await writeResult(flags.out, result, endToEndExtras(result))) {
      say(`written to ${file}`);
    }
    return { table: endToEndTable(result), isGood: result.runs.every(isClean) };
  } finally {
    await own?.stop();
  }
}

type Addresses = Pick<StackFile, 'ingest' | 'stream' | 'kafka' | 'registry'>;

function addressesOf(flags: Flags): { stack: Addresses; stackFile: string | undefined } {
  const { ingest, stream, kafka, registry } = flags;
  if (ingest && stream && kafka && registry) {
    return { stack: { ingest, stream, kafka, registry }, stackFile: undefined };
  }
  const stackFile = flags.stack ?? defaultStackFile;
  const stack = readStackFile(stackFile);
  return {
    stack: {
      ingest: ingest ?? stack.ingest,
      stream: stream ?? stack.stream,
      kafka: kafka ?? stack.kafka,
      registry: registry ?? stack.registry,
    },
    stackFile,
  };
}

function rates(text: string): number[] {
  return text.split(',').map(whole(1, 100_000));
}
