import { type Command, InvalidArgumentError } from 'commander';
import { readDemoKeys } from '../../lib/demo-keys.ts';
import { whole } from '../../lib/flags.ts';
import { readStackFile } from '../../lib/stack-file.ts';
import { resultsFolder, writeResult } from '../results.ts';
import { isProof, measureFanout } from './fanout.ts';
import { fanoutExtras } from './goals.ts';
import { PATTERNS, type Pattern } from './plan.ts';
import { fanoutTable } from './table.ts';
import type { Target } from './target.ts';

interface Flags {
  sockets: number;
  rate: number[];
  symbols: Pattern[];
  seconds: number;
  rounds: number;
  warmUp: number;
  memory: boolean;
  slow: number;
  profile?: string;
  out: string;
  url?: string;
  pid?: number;
  stack?: string;
  kafka?: string;
  registry?: string;
  namespace: string;
}

/** Adds `fanout` to the benchmarks' commands. */
export function addFanoutCommand(program: Command, say: (line: string) => void): void {
  program
    .command('fanout')
    .description('Pills to many sockets: CPU a delivery, latency, memory; beside a bare uWS loop.')
    .option('--sockets <n>', 'how many', whole(1, 1_000), 500)
    .option('--rate <list>', 'pills a second, e.g. 100,1000', listOf(whole(1, 100_000)), RATES)
    .option('--symbols <list>', 'what a socket wants: all, 2of50', listOf(pattern), [...PATTERNS])
    .option('--seconds <n>', 'length of each cell', whole(1, 3_600), 8)
    .option('--rounds <n>', 'times everything is measured', whole(1, 100), 1)
    .option('--warm-up <n>', 'seconds on each server before, not counted', whole(0, 600), 20)
    .option('--no-memory', 'leaves out what a socket takes of memory')
    .option('--slow <n>', 'sockets that stop reading, in runs of 18 s; 0: none', whole(0, 500), 20)
    .option('--profile <dir>', 'where the servers write a CPU profile of their life')
    .option('--out <dir>', 'folder of the JSON result', resultsFolder)
    .option('--url <ws url>', "another's server, which reads the pills topic, and no other")
    .option('--pid <n>', 'its process on this machine, to tell its CPU', whole(1, 2 ** 22))
    .option('--stack <file>', 'with --url: addresses of a running stack; default .local/stack.json')
    .option('--kafka <brokers>', 'with --url: instead of the stack file')
    .option('--registry <url>', 'with --url: instead of the stack file')
    .option('--namespace <name>', 'with --url: PILLOLE_NAMESPACE of the pills topic', '')
    .action(async (flags: Flags) => {
      const { rate, symbols, warmUp, profile, out, ...rest } = flags;
      const result = await measureFanout({
        ...rest,
        rates: rate,
        patterns: symbols,
        warmUpSeconds: warmUp,
        profileFolder: profile,
        other: otherTarget(flags),
        say,
      });
      process.stdout.write(`${fanoutTable(result)}\n`);
      for (const file of await writeResult(out, result, fanoutExtras(result))) {
        say(`written to ${file}`);
      }
      if (!isProof(result)) process.exitCode = 1;
    });
}

const RATES = [100, 400, 1_000];

/** The server that `--url` names: pills go to the log that it reads. */
function otherTarget(flags: Flags): Target | undefined {
  const { url, pid, namespace, stack: stackFile } = flags;
  if (url === undefined) return undefined;
  const isTold = flags.kafka !== undefined && flags.registry !== undefined;
  const stack = isTold ? undefined : readStackFile(stackFile);
  const ownKey = process.env.PILLOLE_API_KEY;
  return {
    ...{ name: 'other', url, pid, saysLive: false },
    key: ownKey ?? (isTold ? undefined : readDemoKeys(stackFile).institutional),
    log: {
      kafkaBrokers: flags.kafka ?? stack!.kafka,
      registryUrl: flags.registry ?? stack!.registry,
      namespace,
    },
  };
}

function listOf<T>(parse: (text: string) => T) {
  return (text: string): T[] => text.split(',').map(parse);
}

function pattern(text: string): Pattern {
  const known = PATTERNS.find((one) => one === text);
  if (known !== undefined) return known;
  throw new InvalidArgumentError(`Give one or more of ${PATTERNS.join(', ')}.`);
}
