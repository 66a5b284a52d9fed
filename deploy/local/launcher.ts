import { rmSync } from 'node:fs';
import { endOrphans } from '../../lib/child-process/orphans.ts';
import type { StackFile } from '../../lib/config/stack-file.ts';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { provision } from '../provision.ts';
import type { LauncherConfig } from './config.ts';
import { makeDemoAccounts, shouldMakeDemoAccounts } from './demo-keys.ts';
import { type Engines, startEngines } from './engines.ts';
import { ensurePepper } from './pepper-file.ts';
import { type Platform, startPlatform } from './platform-processes.ts';
import { openPortAllocator, type PortAllocator } from './port-allocator.ts';
import { type Addresses, type DemoMarket, selectProcesses } from './processes.ts';
import { SetupError } from './setup-error.ts';
import { describeStack } from './stack-description.ts';
import type { StackLayout } from './stack-layout.ts';
import { welcome } from './welcome.ts';

/** Enough for several instances of each process; each partition costs every instance a little. */
const LOCAL_PARTITIONS = 4;

export interface LaunchOptions {
  readonly layout: StackLayout;
  /** undefined = no demo market. */
  readonly demoMarket: DemoMarket | undefined;
  /** Whether a canary measures the way of a pill; needs the demo accounts. */
  readonly hasCanary: boolean;
  readonly config: LauncherConfig;
  readonly report: (line: string) => void;
  /** Shows the status until the signal is aborted. @param metricsUrls /metrics by process name */
  readonly watch: (
    metricsUrls: () => ReadonlyMap<string, string>,
    signal: AbortSignal,
  ) => Promise<void>;
  /** Aborted to stop, at any point of the start. */
  readonly signal: AbortSignal;
}

/**
 * Starts the whole stack in order. When `signal` is aborted, stops it in reverse order; resolves
 * when all processes have ended.
 * @throws SetupError or Error when the stack cannot start; everything started is stopped then
 */
export async function launch(options: LaunchOptions): Promise<void> {
  const { layout, config, report, signal } = options;
  const startedAt = Date.now();
  rmSync(layout.stack, { force: true });
  const orphans = await endOrphans(layout.run);
  if (orphans.length > 0) report(`stopped processes of an earlier start: ${orphans.join(', ')}`);
  const ports = openPortAllocator(layout.ports);
  // Otherwise an engine that is killed at the end would announce its restart.
  const reportWhileUp = (line: string) => {
    if (!signal.aborted) report(line);
  };
  let engines: Engines | undefined;
  let platform: Platform | undefined;
  try {
    report('starting the engines');
    engines = await startEngines({ layout, config, ports, report: reportWhileUp, signal });
    const { addresses, hasDemoAccounts, demoKeys } = await prepare(options, engines, ports);
    const describe = () => describeStack(addresses, platform?.entries() ?? []);
    const writeStack = () => {
      if (platform !== undefined && !signal.aborted) {
        writeFileAtomically(layout.stack, `${JSON.stringify(describe(), null, 2)}\n`);
      }
    };
    platform = await startPlatform({
      specs: selectProcesses(options.demoMarket, options.hasCanary),
      addresses,
      layout,
      ports,
      report,
      signal,
      onChange: writeStack,
    });
    signal.throwIfAborted();
    writeStack();
    report(
      welcome({
        stack: describe(),
        kinds: engines.kinds,
        layout,
        late: platform.late,
        open: platform.open,
        seconds: (Date.now() - startedAt) / 1000,
        demoKeys,
        hasDemoAccounts,
      }),
    );
    await options.watch(() => metricsUrls(describe()), signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    rmSync(layout.stack, { force: true });
    await platform?.stop();
    await engines?.stop();
    ports.release();
  }
}

/** Creates topics, schemas, tables, pepper and demo accounts. */
async function prepare(
  { layout, config, report, signal, hasCanary }: LaunchOptions,
  engines: Engines,
  ports: PortAllocator,
) {
  const { pids, stop, kill, kinds, ...urls } = engines;
  const dedicatedPorts = await chooseDedicatedPorts(ports);
  const addresses: Addresses = { ...urls, namespace: config.namespace, dedicatedPorts };
  report('creating topics, schemas and tables');
  const settings = { partitions: LOCAL_PARTITIONS };
  // A stop does not wait for the provisioner, which may be retrying.
  await Promise.race([
    provision({
      ...{ ...urls, namespace: config.namespace, settings },
      kafkaSecurity: config.kafkaSecurity,
    }),
    aborted(signal),
  ]);
  signal.throwIfAborted();
  ensurePepper(layout.pepper);
  const hasDemoAccounts = shouldMakeDemoAccounts(config.demoAccounts, kinds.postgres);
  if (hasCanary && !hasDemoAccounts) throw new SetupError('--canary needs DEMO_ACCOUNTS=yes.');
  const demo = hasDemoAccounts ? await makeDemoAccounts(layout, addresses, hasCanary) : undefined;
  const demoAccountId = demo?.shownId;
  return { addresses: { ...addresses, demoAccountId }, hasDemoAccounts, demoKeys: demo?.keys };
}

function metricsUrls({ processes }: StackFile): Map<string, string> {
  return new Map(Object.entries(processes).map(([name, { metrics }]) => [name, metrics]));
}

/** A hundred ports; the claim on the port before them keeps the ports of two stacks apart. */
async function chooseDedicatedPorts(ports: PortAllocator): Promise<string> {
  const before = await ports.allocate('dedicated', 8300);
  return `${before + 1}-${before + 100}`;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
