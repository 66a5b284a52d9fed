import path from 'node:path';
import { startBenchProcess } from '../bench-process.ts';
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
  const entry = name === 'stream' ? 'gateway/stream/main.js' : 'benchmarks/fanout/publish-loop.js';
  const { pid, port, stop } = await startBenchProcess(
    {
      ...{ name, entry, args: [], metricsPort: 0 },
      serves: { key: 'stream', port: 0, scheme: 'ws' },
    },
    { engines, place, ports, namespace: log.namespace },
    {
      nodeArgs:
        profileFolder === undefined
          ? []
          : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profileFolder)}`],
      // The loop serves nothing else.
      readyOn: name === 'stream' ? 'metrics' : 'served',
    },
  );
  const url = `ws://127.0.0.1:${port}${STREAM_PATH}`;
  const isOurs = name === 'stream';
  return {
    ...{ name, url, log, pid, stop },
    saysLive: isOurs,
    key: isOurs ? key : undefined,
  };
}
