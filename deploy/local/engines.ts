import { supervise } from '../../lib/child-process/supervise.ts';
import { withoutCredentials } from '../../lib/config/without-credentials.ts';
import { roleName } from '../../lib/postgres/roles.ts';
import { embeddedClickhouse } from './clickhouse.ts';
import { ENGINE_VARIABLES, type EngineName, type EnginesConfig } from './config.ts';
import { dockerAnswers } from './docker.ts';
import type { EmbeddedEngine, EngineDeps, EnginePorts } from './embedded-engine.ts';
import { embeddedKafka } from './kafka.ts';
import { startChild } from './local-child.ts';
import {
  ensurePasswords,
  forEachRole,
  type Passwords,
  type PostgresUrls,
  writePasswordFiles,
} from './passwords.ts';
import { openPortAllocator, type PortAllocator } from './port-allocator.ts';
import { embeddedPostgres, preparePostgres } from './postgres.ts';
import { embeddedRegistry } from './schema-registry.ts';
import type { StackLayout } from './stack-layout.ts';
import { waitUntil } from './wait-until.ts';

export type EngineKind = 'external' | 'container' | 'embedded';

export interface Engines {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly clickhouseUrl: string;
  /** As the role that owns the tables. */
  readonly postgresUrl: string;
  readonly postgresUrls: PostgresUrls;
  readonly kinds: Readonly<Record<EngineName, EngineKind>>;
  /** Pids of the embedded engines that run now. */
  pids(): Partial<Record<EngineName, number>>;
  /** Stops all started engines side by side, within 5 s each. */
  stop(): Promise<void>;
  /** Sends SIGKILL to the embedded engines. */
  kill(): void;
}

interface RunningEngine {
  readonly name: EngineName;
  readonly kind: EngineKind;
  readonly address: string;
  pid(): number | undefined;
  stop(): Promise<void>;
  kill(): void;
}

/** An engine that has not stopped after this time is killed. */
const STOP_TIMEOUT_MS = 4_000;

export const DEFAULT_ENGINE_PORTS: EnginePorts = {
  kafka: 9092,
  controller: 9093,
  registry: 8085,
  clickhouse: 8123,
  postgres: 5432,
};

const EMBEDDED: Readonly<Record<EngineName, (deps: EngineDeps) => Promise<EmbeddedEngine>>> = {
  kafka: embeddedKafka,
  registry: embeddedRegistry,
  clickhouse: embeddedClickhouse,
  postgres: embeddedPostgres,
};

const NAMES = Object.keys(EMBEDDED) as EngineName[];

/**
 * Starts the four engines side by side and keeps them running. For each engine: the server that its
 * environment variable names, else a container if Docker answers, else the embedded engine.
 * @throws SetupError or Error when an engine cannot be started; the others are stopped then
 */
export async function startEngines(options: {
  readonly layout: StackLayout;
  readonly config: EnginesConfig;
  /** The engines to start; by default all four. The address of any other is ''. */
  readonly names?: readonly EngineName[];
  /** By default an allocator of its own in `layout`. */
  readonly ports?: PortAllocator;
  readonly preferredPorts?: Partial<EnginePorts>;
  /** The data is deleted after the run, so it need not survive a crash of the machine. */
  readonly isTemporary?: boolean;
  /** Progress and restarts, a line each. */
  readonly report?: (line: string) => void;
  /** Gives up a start; running engines end by `stop` alone. */
  readonly signal?: AbortSignal;
}): Promise<Engines> {
  const { layout, config } = options;
  const ports = options.ports ?? openPortAllocator(layout.ports);
  // Effective only during the start: later the processes that write to the engines must stop first.
  const starting = new AbortController();
  const giveUp = () => starting.abort();
  if (options.signal?.aborted === true) giveUp();
  options.signal?.addEventListener('abort', giveUp, { once: true });
  const deps: EngineDeps = {
    layout,
    ports,
    preferredPorts: { ...DEFAULT_ENGINE_PORTS, ...options.preferredPorts },
    report: options.report ?? (() => {}),
    isTemporary: options.isTemporary ?? false,
    passwords: ensurePasswords(layout.passwords),
    javaHome: config.javaHome,
    namespace: config.namespace,
    signal: starting.signal,
  };
  const hasDocker = await dockerAnswers(config.dockerHost);

  const started = await Promise.allSettled(
    (options.names ?? NAMES).map((name) =>
      startEngine(name, deps, config.external[name], hasDocker),
    ),
  );
  options.signal?.removeEventListener('abort', giveUp);
  const running = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async () => {
    await Promise.all(running.map((engine) => engine.stop()));
    if (options.ports === undefined) ports.release();
  };
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  const address = (name: EngineName) =>
    running.find((engine) => engine.name === name)?.address ?? '';
  writePasswordFiles(layout, deps.passwords);
  const postgresUrl = address('postgres');
  return {
    kafkaBrokers: address('kafka'),
    registryUrl: address('registry'),
    clickhouseUrl: address('clickhouse'),
    postgresUrl,
    postgresUrls: rolesUrls(postgresUrl, config.external.postgres, deps.passwords),
    kinds: Object.fromEntries(running.map(({ name, kind }) => [name, kind])) as Engines['kinds'],
    pids: () => Object.fromEntries(running.map((engine) => [engine.name, engine.pid()])),
    stop,
    kill: () => running.map((engine) => engine.kill()),
  };
}

/** A server that the environment names has the users of its operator: all roles are that one. */
function rolesUrls(url: string, external: string | undefined, passwords: Passwords): PostgresUrls {
  return forEachRole((role) => {
    if (url === '' || external !== undefined) return url;
    const own = new URL(url);
    own.username = roleName(role);
    own.password = passwords[roleName(role)];
    return own.href;
  });
}

async function startEngine(
  name: EngineName,
  deps: EngineDeps,
  external: string | undefined,
  hasDocker: boolean,
): Promise<RunningEngine> {
  if (external !== undefined) {
    deps.report(`${name}: using the server of ${ENGINE_VARIABLES[name]}`);
    return { name, kind: 'external', address: external, ...NOTHING_TO_STOP };
  }
  return hasDocker ? startInContainer(name, deps) : startEmbedded(name, deps);
}

const NOTHING_TO_STOP = { pid: () => undefined, stop: async () => {}, kill: () => {} };

async function startInContainer(name: EngineName, deps: EngineDeps): Promise<RunningEngine> {
  const startedAt = Date.now();
  const port = await deps.ports.allocate(name, deps.preferredPorts[name]);
  deps.report(`${name}: starting a container`);
  const { startContainer } = await import('./containers.ts');
  const { address, stop } = await startContainer(name, port, deps.passwords);
  if (name === 'postgres') await preparePostgres(port, deps.passwords);
  deps.report(`${name}: ready after ${seconds(startedAt)} s (container)`);
  return { ...NOTHING_TO_STOP, name, kind: 'container', address, stop };
}

async function startEmbedded(name: EngineName, deps: EngineDeps): Promise<RunningEngine> {
  const { layout, report, signal } = deps;
  const engine = await EMBEDDED[name](deps);
  signal?.throwIfAborted();
  const startedAt = Date.now();
  const supervised = await supervise({
    name,
    start: () =>
      startChild({
        name,
        logFolder: layout.logs,
        runFolder: layout.run,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: STOP_TIMEOUT_MS,
        ...engine.child(),
      }),
    ready: (child) =>
      waitUntil(name, engine.isReady, {
        timeoutMs: engine.readyTimeoutMs,
        gaveUp: () =>
          child.exit() === undefined ? undefined : `the process ended, see ${child.logFile}`,
      }),
    say: report,
    signal,
  });
  try {
    await supervised.ready;
  } catch (error) {
    await supervised.stop();
    throw error;
  }
  report(`${name}: ready after ${seconds(startedAt)} s at ${withoutCredentials(engine.address)}`);
  const { pid, stop, kill } = supervised;
  return { name, kind: 'embedded', address: engine.address, pid, stop, kill };
}

function seconds(since: number): string {
  return ((Date.now() - since) / 1000).toFixed(1);
}
