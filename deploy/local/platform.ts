import { type Supervised, supervise } from '../../lib/child-process/supervise.ts';
import { type Child, startChild } from './child.ts';
import type { Place } from './place.ts';
import type { PortBook } from './ports.ts';
import {
  type Addresses,
  entryOf,
  environmentOf,
  type PlacedProcess,
  type ProcessSpec,
  type ServedUrls,
} from './processes.ts';
import type { StackEntry } from './stack-file.ts';
import { answers200, waitUntil } from './wait.ts';

export interface PlatformOptions {
  readonly specs: readonly ProcessSpec[];
  readonly addresses: Addresses;
  readonly place: Place;
  readonly ports: PortBook;
  readonly say: (line: string) => void;
  readonly onChange: () => void;
  readonly signal?: AbortSignal;
}

export interface Platform {
  entries(): StackEntry[];
  /** Names of those that did not get ready in time. */
  readonly late: readonly string[];
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 60_000;
/**
 * A little more than a process takes to end itself (STOP_DEADLINE_MS of lib/run.ts). What is left
 * of the launcher's ten seconds is the engines'.
 */
const STOP_TIMEOUT_MS = 6_000;

/**
 * Starts the processes of the platform side by side and watches them; resolves when each is ready
 * or late.
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { specs, ports, say, signal } = options;
  const placed: PlacedProcess[] = [];
  for (const spec of specs) placed.push(await place(spec, ports));
  const urls: ServedUrls = Object.fromEntries(
    placed.flatMap(({ spec, url }) => (spec.serves === undefined ? [] : [[spec.serves.key, url]])),
  );
  const running = new Map<PlacedProcess, Supervised>();
  const late: string[] = [];

  const startOne = async (one: PlacedProcess) => {
    const startedAt = Date.now();
    const supervised = await supervise({
      name: one.spec.name,
      start: () => start(options, one, urls),
      ready: (child) => ready(one, child),
      say,
      onChange: options.onChange,
      signal,
    });
    running.set(one, supervised);
    // Not the first start's readiness: one that died and came back is as good.
    await waitUntil(one.spec.name, () => isReady(one), {
      timeoutMs: READY_TIMEOUT_MS,
      gaveUp: () => (signal?.aborted === true ? 'stopped' : undefined),
    }).then(
      () => say(`${one.spec.name}: ready after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`),
      () => late.push(one.spec.name),
    );
  };
  const started = await Promise.allSettled(placed.map(startOne));
  const stop = async () => {
    await Promise.all([...running.values()].map((one) => one.stop()));
  };
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  return {
    entries: () => placed.map((one) => ({ placed: one, pid: running.get(one)?.pid() })),
    late,
    stop,
  };
}

async function place(spec: ProcessSpec, ports: PortBook): Promise<PlacedProcess> {
  const metricsPort = await ports.choose(`${spec.name}-metrics`, spec.metricsPort);
  if (spec.serves === undefined) return { spec, metricsPort };
  const port = await ports.choose(spec.name, spec.serves.port);
  return { spec, metricsPort, port, url: `${spec.serves.scheme}://127.0.0.1:${port}` };
}

function start(
  { addresses, place: where }: PlatformOptions,
  placed: PlacedProcess,
  urls: ServedUrls,
): Promise<Child> {
  return startChild({
    name: placed.spec.name,
    command: process.execPath,
    args: ['--enable-source-maps', entryOf(placed.spec), ...placed.spec.args],
    env: environmentOf(placed, addresses, where, urls),
    logFolder: where.logs,
    runFolder: where.run,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
}

function ready(placed: PlacedProcess, child: Child): Promise<void> {
  return waitUntil(placed.spec.name, () => isReady(placed), {
    timeoutMs: READY_TIMEOUT_MS,
    gaveUp: () => (child.exit() === undefined ? undefined : 'it ended'),
  });
}

function isReady({ metricsPort }: PlacedProcess): Promise<boolean> {
  return answers200(`http://127.0.0.1:${metricsPort}/ready`);
}
