import { type Child, startChild } from '../deploy/local/child.ts';
import type { Engines } from '../deploy/local/engines.ts';
import type { Place } from '../deploy/local/place.ts';
import type { PortBook } from '../deploy/local/ports.ts';
import { entryOf, environmentOf, type ProcessSpec } from '../deploy/local/processes.ts';
import { answers200, waitUntil } from '../deploy/local/wait.ts';
import { onCores } from './cores.ts';

/** A process of the platform that the benchmark runs. */
export interface BenchProcess {
  readonly pid: number;
  /** What it serves; 0 when it serves nothing. */
  readonly port: number;
  /** Of /metrics. */
  readonly metricsPort: number;
  /** By its pid; resolves when it is gone. */
  stop(): Promise<void>;
}

export interface Surroundings {
  readonly engines: Engines;
  readonly place: Place;
  readonly ports: PortBook;
  readonly namespace: string;
}

const READY_MAX_MS = 60_000;
const STOP_MAX_MS = 8_000;

export const LATEST: ProcessSpec = {
  ...{ name: 'latest', entry: 'pipelines/main.js', args: ['latest'], metricsPort: 0 },
};
export const API: ProcessSpec = {
  ...{ name: 'api', entry: 'gateway/api/main.js', args: [], metricsPort: 0 },
  serves: { key: 'api', port: 0, scheme: 'http' },
};
export const INGEST: ProcessSpec = {
  ...{ name: 'ingest', entry: 'gateway/ingest/main.js', args: [], metricsPort: 0 },
  serves: { key: 'ingest', port: 0, scheme: 'http' },
};
export const WEBHOOKS: ProcessSpec = {
  ...{ name: 'webhooks', entry: 'pipelines/main.js', args: ['webhooks'], metricsPort: 0 },
};
/** The API's route without its guard. */
export const BARE: ProcessSpec = {
  ...{ name: 'bare', entry: 'gateway/api/bare-main.js', args: [], metricsPort: 0 },
  serves: { key: 'api', port: 0, scheme: 'http' },
};

export interface BenchProcessOptions {
  /** Cores it is held to, as `taskset` takes them; all where there is none. */
  readonly cores?: string;
  /** Told to Node itself. */
  readonly nodeArgs?: readonly string[];
  /** What answers /ready: the port of its metrics unless said otherwise. */
  readonly readyOn?: 'metrics' | 'served';
}

/** Starts a compiled process and waits until it is ready. @throws when it does not get ready */
export async function startBenchProcess(
  spec: ProcessSpec,
  { engines, place, ports, namespace }: Surroundings,
  { cores, nodeArgs = [], readyOn = 'metrics' }: BenchProcessOptions = {},
): Promise<BenchProcess> {
  const metricsPort = await ports.choose(`${spec.name}-metrics`, spec.metricsPort);
  const port = spec.serves === undefined ? 0 : await ports.choose(spec.name, spec.serves.port);
  const placed = { spec, metricsPort, ...(port === 0 ? {} : { port }) };
  const child: Child = await startChild({
    name: spec.name,
    ...onCores(cores, process.execPath, [
      ...['--enable-source-maps', ...nodeArgs, entryOf(spec)],
      ...spec.args,
    ]),
    env: environmentOf(placed, { ...engines, namespace }, place, {}),
    logFolder: place.logs,
    runFolder: place.run,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_MAX_MS,
  });
  const stop = async () => {
    await child.stop();
  };
  try {
    const readyPort = readyOn === 'metrics' ? metricsPort : port;
    await waitUntil(spec.name, () => answers200(`http://127.0.0.1:${readyPort}/ready`), {
      timeoutMs: READY_MAX_MS,
      gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: child.pid, port, metricsPort, stop };
}
