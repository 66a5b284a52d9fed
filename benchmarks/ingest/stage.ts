import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { readLauncherConfig } from '../../deploy/local/config.ts';
import { startEngines } from '../../deploy/local/engines.ts';
import { placeAt } from '../../deploy/local/place.ts';
import { openPortBook } from '../../deploy/local/ports.ts';
import type { ProcessSpec } from '../../deploy/local/processes.ts';
import { provision } from '../../deploy/provision.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { createTopics } from '../../lib/kafka/topics.ts';
import { silentLog } from '../../lib/log.ts';
import { type BenchProcess, startBenchProcess } from '../bench-process.ts';
import { allowedCores, type Cores, holdTo, splitCores } from '../cores.ts';
import type { ProcessName } from './targets.ts';
import { naiveTopic } from './yardstick.ts';

/** A server that is measured; all of them run, and are asked in turn. */
export interface MeasuredServer extends BenchProcess {
  /** Where its inspector will listen, once it is asked for. */
  readonly inspectPort: number;
}

export interface Stage {
  readonly servers: Readonly<Record<ProcessName, MeasuredServer>>;
  /** The embedded broker; undefined when it is another's. */
  readonly brokerPid: number | undefined;
  /** Null where all share all cores. */
  readonly cores: Cores | null;
}

const PARTITIONS = 4;

const ENTRIES: Readonly<Record<ProcessName, string>> = {
  echo: 'benchmarks/ingest/echo-main.js',
  naive: 'benchmarks/ingest/naive-main.js',
  ours: 'gateway/ingest/main.js',
};

/**
 * Starts engines (those that environment variables name are used as they are) and the three
 * servers, each held to the same core, everything else to the others; runs `work`, and stops and
 * removes everything afterwards, also on errors.
 */
export async function withStage<T>(
  say: (line: string) => void,
  work: (stage: Stage) => Promise<T>,
): Promise<T> {
  const stops: (() => Promise<unknown> | unknown)[] = [];
  try {
    return await work(await build(say, (stop) => stops.push(stop)));
  } finally {
    for (const stop of stops.reverse()) {
      await Promise.resolve(stop()).catch((error: Error) => say(`not stopped: ${error.message}`));
    }
  }
}

async function build(
  say: (line: string) => void,
  onStop: (stop: () => Promise<unknown> | unknown) => void,
): Promise<Stage> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
  onStop(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const place = placeAt(folder);
  const ports = openPortBook(place.ports);
  onStop(() => ports.release());
  const namespace = `ingest${randomBytes(3).toString('hex')}`;
  const engines = await startEngines({
    ...{ place, ports, say, config: readLauncherConfig() },
    wantedPorts: { kafka: 0, controller: 0, registry: 0, clickhouse: 0, postgres: 0 },
  });
  onStop(() => engines.stop());
  await provision({ ...engines, namespace, settings: { partitions: PARTITIONS } });
  const client = createKafkaClient(engines.kafkaBrokers.split(','), 'bench', silentLog);
  await createTopics(client, [{ name: naiveTopic(namespace), partitions: PARTITIONS, config: {} }]);

  // After the engines' start: a JVM sizes its threads by the cores that it sees then.
  const cores = splitCores();
  const before = allowedCores();
  if (cores !== null && before !== undefined) {
    holdTo(cores.others, [process.pid, ...Object.values(engines.pids())]);
    onStop(() => holdTo(before, [process.pid]));
  }
  const start = async (name: ProcessName): Promise<MeasuredServer> => {
    const spec: ProcessSpec = {
      ...{ name, entry: ENTRIES[name], args: [], metricsPort: 0 },
      serves: { key: 'ingest', port: 0, scheme: 'http' },
    };
    const inspectPort = await ports.choose(`${name}-inspect`, 0);
    const server = await startBenchProcess(
      spec,
      { engines, place, ports, namespace },
      {
        ...(cores === null ? {} : { cores: cores.server }),
        nodeArgs: [`--inspect-port=127.0.0.1:${inspectPort}`],
      },
    );
    onStop(() => server.stop());
    return { ...server, inspectPort };
  };
  const servers = {
    echo: await start('echo'),
    naive: await start('naive'),
    ours: await start('ours'),
  };
  return { servers, brokerPid: engines.pids().kafka, cores };
}
