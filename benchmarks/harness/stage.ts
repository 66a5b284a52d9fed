import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { readLauncherConfig } from '../../deploy/local/config.ts';
import { makeDemoAccounts } from '../../deploy/local/demo-keys.ts';
import { type Engines, startEngines } from '../../deploy/local/engines.ts';
import { startChild } from '../../deploy/local/local-child.ts';
import { ensurePepper } from '../../deploy/local/pepper-file.ts';
import { openPortAllocator, type PortAllocator } from '../../deploy/local/port-allocator.ts';
import { entryOf, environmentOf, PROCESSES } from '../../deploy/local/processes.ts';
import { type StackLayout, stackLayout } from '../../deploy/local/stack-layout.ts';
import { answers200, waitUntil } from '../../deploy/local/wait-until.ts';
import { provision } from '../../deploy/provision.ts';
import { readPepper } from '../../domain/access/pepper.ts';
import { jobsSchema } from '../../domain/webhooks/deliveries/drain-jobs.ts';
import { NODE_ARGUMENTS } from '../../lib/child-process/node-arguments.ts';
import { silentLog } from '../../lib/log/log.ts';
import { openDatabase, schemaName } from '../../lib/postgres/database.ts';
import type { PillsLog } from './bench-pills.ts';
import { onCores } from './cores.ts';
import { inTemporaryFolder } from './local-stack.ts';

/** Engines, namespaces in them, and processes: everything that a benchmark starts and stops. */
export type Stage = Awaited<ReturnType<typeof buildStage>>;

type Stop = () => Promise<unknown> | unknown;

interface ProcessDeps {
  readonly engines: Engines;
  readonly layout: StackLayout;
  readonly ports: PortAllocator;
  readonly onStop: (stop: Stop) => void;
}

/** As a local stack has them. */
const PARTITIONS = 4;
const READY_MAX_MS = 60_000;
const STOP_MAX_MS = 8_000;

/**
 * Starts engines (those that environment variables name are used as they are) and runs `work`.
 * Afterwards, also on errors, everything that was started is stopped by its pid, and its data is
 * removed.
 */
export function withStage<T>(
  say: (line: string) => void,
  work: (stage: Stage) => Promise<T>,
): Promise<T> {
  return inTemporaryFolder(async (folder) => {
    const stops: Stop[] = [];
    try {
      return await work(await buildStage(folder, say, (stop) => stops.push(stop)));
    } finally {
      for (const stop of stops.reverse()) {
        await (async () => stop())().catch((error: Error) => say(`not stopped: ${error.message}`));
      }
    }
  });
}

async function buildStage(
  folder: string,
  say: (line: string) => void,
  onStop: (stop: Stop) => void,
) {
  const layout = stackLayout(folder);
  const ports = openPortAllocator(layout.ports);
  onStop(() => ports.release());
  say('starting engines');
  const engines = await startEngines({
    layout,
    ports,
    report: say,
    config: readLauncherConfig(),
    preferredPorts: { kafka: 0, controller: 0, registry: 0, clickhouse: 0, postgres: 0 },
  });
  onStop(() => engines.stop());
  ensurePepper(layout.pepper);

  return {
    say,
    folder,
    engines,
    ports,
    pepper: readPepper(layout.pepper),
    /** Registers a function that undoes a step. Stops run in reverse order. */
    onStop,
    start: startProcess.bind(null, { engines, layout, ports, onStop }),
    /** Makes the topics, tables and schemas of a new namespace. */
    async addNamespace(prefix: string): Promise<PillsLog> {
      const namespace = `${prefix}${randomBytes(3).toString('hex')}`;
      await provision({ ...engines, namespace, settings: { partitions: PARTITIONS } });
      const { kafkaBrokers, registryUrl } = engines;
      return { kafkaBrokers, registryUrl, namespace };
    },

    /** Makes the demo accounts of a namespace. @returns the key of the institutional one */
    async addDemoKey(namespace: string): Promise<string> {
      const { keys } = await makeDemoAccounts(layout, { ...engines, namespace });
      return keys!.institutional;
    },

    /** Opens the database of a namespace; its schemas are removed when the stage ends. */
    openDatabase(namespace: string) {
      const url = engines.postgresUrl;
      const db = openDatabase({ url, namespace, name: 'bench', log: silentLog, lazyCommits: true });
      onStop(async () => {
        for (const schema of [jobsSchema(namespace), schemaName(namespace)]) {
          const drop = sql`DROP SCHEMA IF EXISTS ${sql.id(schema)} CASCADE`.execute(db);
          await drop.catch(() => undefined);
        }
        await db.destroy();
      });
      return db;
    },
  };
}

/**
 * Starts a compiled process of the platform in a namespace, and waits until it is ready.
 * @param options.entry below `dist/benchmarks`, of a process that takes the place of the
 *   platform's, as its reference
 * @param options.cores that it is pinned to, as `taskset` takes them
 * @throws when it does not get ready
 */
async function startProcess(
  { engines, layout, ports, onStop }: ProcessDeps,
  name: string,
  namespace: string,
  options: {
    readonly entry?: string;
    readonly cores?: string | undefined;
    readonly nodeArgs?: readonly string[];
  } = {},
) {
  const { entry, cores, nodeArgs = [] } = options;
  const known = PROCESSES.find((one) => one.name === name)!;
  const spec =
    entry === undefined
      ? known
      : { ...known, name: entry.replaceAll('/', '-'), entry: `benchmarks/${entry}` };
  const metricsPort = await ports.allocate(`${spec.name}-metrics`, 0);
  const port = spec.serves === undefined ? 0 : await ports.allocate(spec.name, 0);
  const instance = { spec, metricsPort, ...(port === 0 ? {} : { port }) };
  const args = [...NODE_ARGUMENTS, ...nodeArgs, entryOf(spec), ...spec.args];
  const child = await startChild({
    name: spec.name,
    ...onCores(cores, process.execPath, args),
    env: environmentOf(instance, { ...engines, namespace }, layout, {}),
    logFolder: layout.logs,
    runFolder: layout.run,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_MAX_MS,
  });
  onStop(child.stop);
  await waitUntil(spec.name, () => answers200(`http://127.0.0.1:${metricsPort}/ready`), {
    timeoutMs: READY_MAX_MS,
    gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
  });
  // `port` is 0 when the process serves nothing; `stop` stops it before the stage ends.
  return { pid: child.pid, port, metricsPort, stop: () => child.stop() };
}
