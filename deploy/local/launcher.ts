import { endOrphans } from '../../lib/child-process/orphans.ts';
import type { StackFile } from '../../lib/stack-file.ts';
import { provision } from '../provision.ts';
import type { LauncherConfig } from './config.ts';
import { makeDemoAccounts, wantsDemoAccounts } from './demo-keys.ts';
import { type Engines, startEngines } from './engines.ts';
import { ensurePepper } from './pepper.ts';
import type { Place } from './place.ts';
import { type Platform, startPlatform } from './platform.ts';
import { openPortBook, type PortBook } from './ports.ts';
import { type Addresses, type DemoMarket, wantedProcesses } from './processes.ts';
import { describeStack, removeStackFile, writeStackFile } from './stack-file.ts';
import { welcome } from './welcome.ts';

/** Enough for several instances of each process; every further one costs each of them a little. */
const LOCAL_PARTITIONS = 4;

export interface LaunchOptions {
  readonly place: Place;
  /** undefined: none. */
  readonly demoMarket: DemoMarket | undefined;
  readonly config: LauncherConfig;
  readonly say: (line: string) => void;
  /** Tells how it does until the signal is aborted. @param places where each process tells its metrics */
  readonly watch: (places: () => ReadonlyMap<string, string>, signal: AbortSignal) => Promise<void>;
  /** Aborted to stop, at whatever point of the start. */
  readonly signal: AbortSignal;
}

/**
 * Brings the whole stack up, in order, and when `signal` is aborted down again in the reverse one;
 * resolves when everything it started is gone.
 * @throws SetupError or Error when it cannot be brought up; what was started is stopped then.
 */
export async function launch(options: LaunchOptions): Promise<void> {
  const { place, config, say, signal } = options;
  const startedAt = Date.now();
  removeStackFile(place.stack);
  const orphans = await endOrphans(place.run);
  if (orphans.length > 0) say(`ended what an earlier start left: ${orphans.join(', ')}`);
  const ports = openPortBook(place.ports);
  // An engine that is killed at the end would say that it is restarted.
  const sayWhileUp = (line: string) => {
    if (!signal.aborted) say(line);
  };
  let engines: Engines | undefined;
  let platform: Platform | undefined;
  try {
    say('starting the engines');
    engines = await startEngines({ place, config, ports, say: sayWhileUp, signal });
    let addresses: Addresses = {
      ...addressesOf(engines),
      namespace: config.namespace,
      dedicatedPorts: await chooseDedicatedPorts(ports),
    };
    say('creating topics, schemas and tables');
    // Not waited for once we are to stop: it may be retrying.
    const settings = { partitions: LOCAL_PARTITIONS };
    await Promise.race([provision({ ...addresses, settings }), aborted(signal)]);
    signal.throwIfAborted();
    ensurePepper(place.pepper);
    const hasDemoAccounts = wantsDemoAccounts(config.demoAccounts, engines.kinds.postgres);
    const demo = hasDemoAccounts ? await makeDemoAccounts(place, addresses) : undefined;
    addresses = { ...addresses, demoAccountId: demo?.shownId };
    const specs = wantedProcesses(options.demoMarket);
    const writeStack = () => {
      if (platform === undefined || signal.aborted) return;
      writeStackFile(place.stack, describeStack(addresses, platform.entries()));
    };
    platform = await startPlatform({
      ...{ specs, addresses, place, ports, say, signal },
      onChange: writeStack,
    });
    signal.throwIfAborted();
    writeStack();
    const stack = describeStack(addresses, platform.entries());
    const took = (Date.now() - startedAt) / 1000;
    say(
      welcome({
        ...{ stack, kinds: engines.kinds, place, late: platform.late, seconds: took },
        ...{ demoKeys: demo?.keys, hasDemoAccounts },
      }),
    );
    const { entries } = platform;
    await options.watch(() => metricsPlaces(describeStack(addresses, entries())), signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    removeStackFile(place.stack);
    await platform?.stop();
    await engines?.stop();
    ports.release();
  }
}

function metricsPlaces({ processes }: StackFile): Map<string, string> {
  return new Map(Object.entries(processes).map(([name, { metrics }]) => [name, metrics]));
}

/** A hundred ports, told apart from those of another stack by the one before them. */
async function chooseDedicatedPorts(ports: PortBook): Promise<string> {
  const before = await ports.choose('dedicated', 8300);
  return `${before + 1}-${before + 100}`;
}

function addressesOf(engines: Engines): Omit<Addresses, 'namespace'> {
  const { kafkaBrokers, registryUrl, clickhouseUrl, postgresUrl } = engines;
  return { kafkaBrokers, registryUrl, clickhouseUrl, postgresUrl };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
