import { readApiConfig } from '../../gateway/api/config.ts';
import { readIngestConfig } from '../../gateway/ingest/config.ts';
import { NODE_ARGUMENTS } from '../../lib/child-process/node-arguments.ts';
import { type Supervised, supervise } from '../../lib/child-process/supervise.ts';
import { childEnvironment } from './config.ts';
import { type Child, startChild } from './local-child.ts';
import type { PortAllocator } from './port-allocator.ts';
import {
  type Addresses,
  entryOf,
  environmentOf,
  type ProcessInstance,
  type ProcessSpec,
  type ServedUrls,
} from './processes.ts';
import type { StackEntry } from './stack-description.ts';
import type { StackLayout } from './stack-layout.ts';
import { answers200, waitUntil } from './wait-until.ts';

export interface PlatformOptions {
  readonly specs: readonly ProcessSpec[];
  readonly addresses: Addresses;
  readonly layout: StackLayout;
  readonly ports: PortAllocator;
  readonly report: (line: string) => void;
  readonly onChange: () => void;
  readonly signal?: AbortSignal;
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

const READY_TIMEOUT_MS = 60_000;
/**
 * A little longer than a process takes to end itself (STOP_DEADLINE_MS of lib/run/run-process.ts). The
 * engines get the rest of the launcher's ten seconds.
 */
const STOP_TIMEOUT_MS = 6_000;

/**
 * Starts the processes of the platform side by side and supervises them; resolves when each process
 * is ready or late.
 */
export async function startPlatform(options: PlatformOptions) {
  const { specs, ports, report, signal } = options;
  const instances: ProcessInstance[] = [];
  for (const spec of specs) instances.push(await allocatePorts(spec, ports));
  const urls: ServedUrls = Object.fromEntries(
    instances.flatMap(({ spec, url }) =>
      spec.serves === undefined ? [] : [[spec.serves.key, url]],
    ),
  );
  const running = new Map<ProcessInstance, Supervised>();
  const late: string[] = [];

  const startOne = async (instance: ProcessInstance) => {
    const startedAt = Date.now();
    const { name } = instance.spec;
    const supervised = await supervise({
      name,
      start: () => start(options, instance, urls),
      ready: (child) => waitUntilReady(instance, child),
      say: report,
      onChange: options.onChange,
      signal,
    });
    running.set(instance, supervised);
    // Not the readiness of the first start, because a restarted process counts as well.
    await waitUntil(name, () => isReady(instance), {
      timeoutMs: READY_TIMEOUT_MS,
      gaveUp: () => (signal?.aborted === true ? 'stopped' : undefined),
    }).then(
      () => report(`${name}: ready after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`),
      () => late.push(name),
    );
  };
  const started = await Promise.allSettled(instances.map(startOne));
  const stop = async () => {
    await Promise.all([...running.values()].map((one) => one.stop()));
  };
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  return {
    entries: (): StackEntry[] =>
      instances.map((instance) => ({ instance, pid: running.get(instance)?.pid() })),
    /** Names of the processes that were not ready in time. */
    late: late as readonly string[],
    /** What ingest and the API say in their start logs: what is open, and why. */
    open: instances.flatMap((instance) => {
      const { name } = instance.spec;
      const read =
        name === 'api' ? readApiConfig : name === 'ingest' ? readIngestConfig : undefined;
      const env = environmentOf(instance, options.addresses, options.layout, urls);
      return read?.(childEnvironment(env)).open ?? [];
    }),
    stop,
  };
}

async function allocatePorts(spec: ProcessSpec, ports: PortAllocator): Promise<ProcessInstance> {
  const metricsPort = await ports.allocate(`${spec.name}-metrics`, spec.metricsPort);
  if (spec.serves === undefined) return { spec, metricsPort };
  const port = await ports.allocate(spec.name, spec.serves.port);
  return { spec, metricsPort, port, url: `${spec.serves.scheme}://127.0.0.1:${port}` };
}

function start(
  { addresses, layout, ports }: PlatformOptions,
  instance: ProcessInstance,
  urls: ServedUrls,
): Promise<Child> {
  const { spec } = instance;
  return startChild({
    name: spec.name,
    command: process.execPath,
    args: [...NODE_ARGUMENTS, entryOf(spec), ...spec.args],
    env: {
      ...environmentOf(instance, addresses, layout, urls),
      // Webhooks may lead to a developer's receiver on this machine, but to none of our ports.
      WEBHOOK_REFUSED_PORTS: ports.allocated().join(','),
    },
    logFolder: layout.logs,
    runFolder: layout.run,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
}

function waitUntilReady(instance: ProcessInstance, child: Child): Promise<void> {
  return waitUntil(instance.spec.name, () => isReady(instance), {
    timeoutMs: READY_TIMEOUT_MS,
    gaveUp: () => (child.exit() === undefined ? undefined : 'the process ended'),
  });
}

function isReady({ metricsPort }: ProcessInstance): Promise<boolean> {
  return answers200(`http://127.0.0.1:${metricsPort}/ready`);
}
