import { setMaxListeners } from 'node:events';
import path from 'node:path';
import { Command, Option } from 'commander';
import { takeLock } from '../../lib/child-process/lock.ts';
import { whole } from '../../lib/flags.ts';
import { killChildren } from './child.ts';
import { readLauncherConfig } from './config.ts';
import { settleHome } from './home.ts';
import { placeAt } from './place.ts';
import { SetupError } from './setup-error.ts';
import { createScreen, QUIET } from './status/screen.ts';

interface Options {
  readonly demo: boolean;
  readonly pillsPerS: number;
  readonly seed: number;
  readonly direct?: true;
  readonly statusEvery: number;
  readonly quiet?: true;
  readonly data?: string;
}

/**
 * Everything is down within ten seconds: the processes have six of them (platform.ts), the engines
 * what is left.
 */
const STOP_MS_MAX = 9_500;

const options = new Command('npm start --')
  .description('Runs pillole with all its engines on this machine.')
  .option('--no-demo', 'without the demo market that sends pills')
  .addOption(
    ofDemo('--pills-per-s <n>', 'mean rate of the demo market')
      .argParser(whole(1, 5_000))
      .default(10),
  )
  .addOption(
    ofDemo('--seed <n>', 'another seed is another demo market')
      .argParser(whole(0, 2 ** 32 - 1))
      .default(1),
  )
  .addOption(ofDemo('--direct', 'the demo market writes Avro to the log, past the gateway'))
  .option(
    '--status-every <s>',
    'where no terminal is: a line of status so often',
    whole(1, 3_600),
    60,
  )
  .option('--quiet', 'say only what goes wrong')
  .option('--data <dir>', 'folder for data, logs and ports instead of .local')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<Options>();

process.exitCode = await run(options);
// A timer or socket left somewhere must not keep a stopped launcher alive.
process.exit();

/** `npm start`: the whole platform on this machine. @returns the exit code. */
async function run(options: Options): Promise<number> {
  const { quiet, data } = options;
  // The terminal may be gone before we are.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const complain = (line: string) => process.stderr.write(`${line}\n`);
  const screen =
    quiet === true
      ? QUIET
      : createScreen({ output: process.stdout, lineEveryS: options.statusEvery });
  const { say } = screen;
  const place = placeAt(data === undefined ? undefined : path.resolve(data));
  settleHome(place);
  const locked = takeLock(place.lock);
  if (!locked.ok) {
    complain(
      `pillole already runs from ${place.folder} (pid ${locked.owner.pid}): stop it first, ` +
        'or start a second one with --data DIR.',
    );
    return 1;
  }
  const stopping = stopOnSignals(say);
  try {
    checkNode();
    // After the check: an old Node may not even load the rest.
    const { launch } = await import('./launcher.ts');
    const { pillsPerS, seed, direct } = options;
    const demoMarket = options.demo ? { pillsPerS, seed, isDirect: direct === true } : undefined;
    await launch({
      ...{ place, demoMarket, config: readLauncherConfig(), signal: stopping },
      ...screen,
    });
    say('pillole has stopped.');
    return 0;
  } catch (error) {
    complain(
      error instanceof SetupError
        ? error.message
        : `pillole cannot start: ${(error as Error).message} (logs: ${place.logs})`,
    );
    return 1;
  } finally {
    killChildren();
    locked.lock.release();
  }
}

/** Says something about a market that --no-demo leaves out: both together are a mistake. */
function ofDemo(flags: string, description: string): Option {
  return new Option(flags, description).conflicts('demo');
}

/** The first signal stops in order, the second kills. */
function stopOnSignals(say: (line: string) => void): AbortSignal {
  const stopping = new AbortController();
  // Each engine and each process listens: more than the ten that Node takes for a leak.
  setMaxListeners(50, stopping.signal);
  const onSignal = () => {
    if (stopping.signal.aborted) {
      say('killing');
      killChildren();
      return;
    }
    say('stopping (once more kills)');
    stopping.abort();
    setTimeout(() => {
      say('not everything has ended in time: killing');
      killChildren();
    }, STOP_MS_MAX).unref();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, onSignal);
  return stopping.signal;
}

/** As `engines` in package.json: npm warns only. */
function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fits = (major === 20 && minor >= 19) || major === 21 || major === 22;
  if (fits) return;
  throw new SetupError(
    `Node 20.19 to 22 is needed, this is ${process.versions.node}; ` +
      'install it with: nvm install 22 (or from nodejs.org)',
  );
}
