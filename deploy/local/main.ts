import { setMaxListeners } from 'node:events';
import path from 'node:path';
import { Command, Option } from 'commander';
import { takeLock } from '../../lib/child-process/lock.ts';
import { printConfig } from '../../lib/config/command-line.ts';
import { describeSettings } from '../../lib/config/describe.ts';
import { whole } from '../../lib/config/flags.ts';
import { unknownSettings } from '../../lib/config/unknown-settings.ts';
import { readLauncherConfig } from './config.ts';
import { killChildren } from './local-child.ts';
import { SetupError } from './setup-error.ts';
import { openStackFolder } from './stack-folder.ts';
import { stackLayout } from './stack-layout.ts';
import { createScreen, QUIET } from './status/screen.ts';

/**
 * The whole stack stops within ten seconds: the processes take six of them (platform.ts), the
 * engines the rest.
 */
const STOP_MS_MAX = 9_500;

const ROOT_WARNING =
  'Warning: started as root. A fault in any process would lay the whole machine open: ' +
  'start pillole as an ordinary user.';

const options = new Command('npm start --')
  .description('Runs pillole and all its engines on this machine.')
  .option('--no-demo', 'do not run the demo market, which sends pills')
  .addOption(
    ofDemo('--pills-per-s <n>', 'mean rate of the demo market')
      .argParser(whole(1, 5_000))
      .default(10),
  )
  .addOption(
    ofDemo('--seed <n>', 'seed of the demo market; each seed gives another market')
      .argParser(whole(0, 2 ** 32 - 1))
      .default(1),
  )
  .addOption(ofDemo('--direct', 'the demo market writes Avro to the log, past the gateway'))
  .option('--canary', 'measure the way of a pill of TEST:CANARY in every channel, each second')
  .option(
    '--status-every <s>',
    'without a terminal: print a status line every <s> seconds',
    whole(1, 3_600),
    60,
  )
  .option('--quiet', 'print errors only')
  .option('--data <dir>', 'folder for data, logs and ports, instead of .local')
  .option('--print-config', 'print the settings in force and where each comes from')
  .on('option:print-config', () => printConfig('start', readLauncherConfig))
  .addHelpText('after', `\n${describeSettings('start')}`)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{
    readonly demo: boolean;
    readonly pillsPerS: number;
    readonly seed: number;
    readonly direct?: true;
    readonly canary?: true;
    readonly statusEvery: number;
    readonly quiet?: true;
    readonly data?: string;
  }>();

process.exitCode = await run();
// A forgotten timer or socket must not keep a stopped launcher alive.
process.exit();

/** `npm start`: the whole platform on this machine. @returns the exit code. */
async function run(): Promise<number> {
  const { quiet, data } = options;
  // The terminal may close before the launcher ends.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const reportError = (line: string) => process.stderr.write(`${line}\n`);
  const screen = quiet === true ? QUIET : createScreen(process.stdout, options.statusEvery);
  const layout = stackLayout(data === undefined ? undefined : path.resolve(data));
  // Whatever a process of the stack writes is for this user alone.
  process.umask(0o077);
  try {
    openStackFolder(layout);
  } catch (error) {
    reportError((error as Error).message);
    return 1;
  }
  if (process.getuid?.() === 0) reportError(ROOT_WARNING);
  for (const warning of unknownSettings(process.env)) reportError(`Warning: ${warning}.`);
  const locked = takeLock(layout.lock);
  if (!locked.ok) {
    reportError(
      `pillole already runs from ${layout.folder} (pid ${locked.owner.pid}): stop it first, ` +
        'or start a second stack with --data DIR.',
    );
    return 1;
  }
  const stopping = stopOnSignals(screen.report);
  try {
    checkNode();
    // Loaded after the check: an old Node may fail to load the rest.
    const { launch } = await import('./launcher.ts');
    const { pillsPerS, seed, direct } = options;
    const demoMarket = options.demo ? { pillsPerS, seed, isDirect: direct === true } : undefined;
    const config = readLauncherConfig();
    const hasCanary = options.canary === true;
    await launch({ layout, demoMarket, hasCanary, config, signal: stopping, ...screen });
    screen.report('pillole has stopped.');
    return 0;
  } catch (error) {
    reportError(
      error instanceof SetupError
        ? error.message
        : `pillole cannot start: ${(error as Error).message} (logs: ${layout.logs})`,
    );
    return 1;
  } finally {
    killChildren();
    locked.lock.release();
  }
}

/** An option of the demo market, which conflicts with --no-demo. */
function ofDemo(flags: string, description: string): Option {
  return new Option(flags, description).conflicts('demo');
}

/** The first signal stops everything in order, the second kills. */
function stopOnSignals(report: (line: string) => void): AbortSignal {
  const stopping = new AbortController();
  // Each engine and process adds a listener; Node reports a leak above ten.
  setMaxListeners(50, stopping.signal);
  const onSignal = () => {
    if (stopping.signal.aborted) {
      report('killing everything');
      killChildren();
      return;
    }
    report('stopping; a second Ctrl-C kills');
    stopping.abort();
    setTimeout(() => {
      report('not everything has stopped in time: killing the rest');
      killChildren();
    }, STOP_MS_MAX).unref();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, onSignal);
  return stopping.signal;
}

/** Enforces `engines` of package.json, where npm only warns. */
function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fits = (major === 20 && minor >= 19) || major === 21 || major === 22;
  if (fits) return;
  throw new SetupError(
    `Node 20.19 to 22 is required, found ${process.versions.node}; ` +
      'install it with: nvm install 22 (or from nodejs.org)',
  );
}
