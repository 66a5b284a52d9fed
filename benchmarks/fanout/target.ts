import path from 'node:path';
import { startChild } from '../../deploy/local/child.ts';
import { entryOf, environmentOf } from '../../deploy/local/processes.ts';
import { answers200, waitUntil } from '../../deploy/local/wait.ts';
import type { LogPlace } from '../pill-sender.ts';
import type { TargetName } from './plan.ts';
import type { Stage } from './stage.ts';

/** A server that is measured. */
export interface Target {
  readonly name: TargetName;
  /** `ws://…` */
  readonly url: string;
  /** Whether it says `live` once a subscription holds. */
  readonly saysLive: boolean;
  /** Sent as X-API-Key. */
  readonly key: string | undefined;
  /** Unknown where it is another's: then its CPU and memory are not told. */
  readonly pid: number | undefined;
  /** The log that it reads. */
  readonly log: LogPlace;
}

/** A target that was started here. */
export interface StartedTarget extends Target {
  readonly pid: number;
  /** By its pid; resolves when it is gone. */
  stop(): Promise<void>;
}

const READY_MAX_MS = 60_000;
const STOP_MAX_MS = 8_000;
const STREAM_PATH = '/api/stream';

/**
 * Starts the stream process, or the bare publish loop, as its own compiled process.
 * @param profileFolder where it writes a CPU profile of its whole life when it stops
 * @throws when it does not get ready
 */
export async function startTarget(
  name: 'stream' | 'loop',
  { engines, place, ports, key, logs }: Stage,
  profileFolder: string | undefined,
): Promise<StartedTarget> {
  const log = logs[name];
  const port = await ports.choose(name, 0);
  const metricsPort = await ports.choose(`${name}-metrics`, 0);
  const entry = name === 'stream' ? 'gateway/stream/main.js' : 'benchmarks/fanout/publish-loop.js';
  const spec = {
    ...{ name, entry, args: [], metricsPort },
    serves: { key: 'stream', port, scheme: 'ws' },
  } as const;
  const placed = { spec, metricsPort, port };
  const profiling =
    profileFolder === undefined
      ? []
      : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profileFolder)}`];
  const child = await startChild({
    name,
    command: process.execPath,
    args: [...profiling, '--enable-source-maps', entryOf(spec)],
    env: {
      ...environmentOf(placed, { ...engines, namespace: log.namespace }, place, {}),
      LOOP_PORT: String(port),
    },
    logFolder: place.logs,
    runFolder: place.run,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_MAX_MS,
  });
  const stop = async () => {
    await child.stop();
  };
  try {
    const readyUrl = `http://127.0.0.1:${name === 'stream' ? metricsPort : port}/ready`;
    await waitUntil(name, () => answers200(readyUrl), {
      timeoutMs: READY_MAX_MS,
      gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const url = `ws://127.0.0.1:${port}${STREAM_PATH}`;
  const isOurs = name === 'stream';
  return {
    ...{ name, url, log, stop },
    pid: child.pid,
    saysLive: isOurs,
    key: isOurs ? key : undefined,
  };
}
