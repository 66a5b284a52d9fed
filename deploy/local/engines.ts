import { type Supervised, supervise } from '../../lib/child-process/supervise.ts';
import { embeddedClickhouse } from './clickhouse.ts';
import { ENGINE_VARIABLES, type EngineName, type EnginesConfig } from './config.ts';
import { dockerAnswers } from './docker.ts';
import type { EmbeddedEngine, EnginePorts, EngineSetting } from './embedded.ts';
import { embeddedKafka } from './kafka.ts';
import type { Place } from './place.ts';
import { openPortBook, type PortBook } from './ports.ts';
import { embeddedPostgres } from './postgres.ts';
import { embeddedRegistry } from './registry.ts';

export type EngineKind = 'external' | 'container' | 'embedded';

export interface EnginesOptions {
  readonly place: Place;
  readonly config: EnginesConfig;
  /** Chosen and remembered ports; by default a book in `place`. */
  readonly ports?: PortBook;
  /** Ports to ask for, 0 for any free one. */
  readonly wantedPorts?: Partial<EnginePorts>;
  /** Progress and restarts, a line each. */
  readonly say?: (line: string) => void;
  /** Gives up a start that is under way; engines that all run end by `stop` alone. */
  readonly signal?: AbortSignal;
}

export interface Engines {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly clickhouseUrl: string;
  readonly postgresUrl: string;
  readonly kinds: Readonly<Record<EngineName, EngineKind>>;
  /** Pids of the embedded ones that live now. */
  pids(): Partial<Record<EngineName, number>>;
  /** Ends all that were started, within 5 s each, side by side. */
  stop(): Promise<void>;
  /** SIGKILL to the embedded ones. */
  kill(): void;
}

interface Running {
  readonly name: EngineName;
  readonly kind: EngineKind;
  readonly address: string;
  pid(): number | undefined;
  stop(): Promise<void>;
  kill(): void;
}

export const DEFAULT_ENGINE_PORTS: EnginePorts = {
  kafka: 9092,
  controller: 9093,
  registry: 8085,
  clickhouse: 8123,
  postgres: 5432,
};

const EMBEDDED: Readonly<Record<EngineName, (setting: EngineSetting) => Promise<EmbeddedEngine>>> =
  {
    kafka: embeddedKafka,
    registry: embeddedRegistry,
    clickhouse: embeddedClickhouse,
    postgres: embeddedPostgres,
  };

const NAMES = Object.keys(EMBEDDED) as EngineName[];

/**
 * Starts the four engines everything else runs on, side by side, and keeps them running. For each:
 * the server its environment variable names, else a container when a Docker engine answers, else
 * the embedded one.
 * @throws SetupError or Error when one cannot be started; the others are stopped then.
 */
export async function startEngines(options: EnginesOptions): Promise<Engines> {
  const say = options.say ?? (() => {});
  const ownBook = options.ports === undefined ? openPortBook(options.place.ports) : undefined;
  const ports = options.ports ?? ownBook;
  if (ports === undefined) throw new Error('unreachable');
  const wantedPorts = { ...DEFAULT_ENGINE_PORTS, ...options.wantedPorts };
  const { place, config } = options;
  // Only while they start: later the processes that write to them are to stop first.
  const starting = new AbortController();
  const giveUp = () => starting.abort();
  if (options.signal?.aborted === true) giveUp();
  options.signal?.addEventListener('abort', giveUp, { once: true });
  const setting: EngineSetting = {
    ...{ place, ports, wantedPorts, say },
    javaHome: config.javaHome,
    signal: starting.signal,
  };
  const withDocker = await dockerAnswers(config.dockerHost);

  const started = await Promise.allSettled(
    NAMES.map((name) => startEngine(name, setting, config.external[name], withDocker)),
  );
  options.signal?.removeEventListener('abort', giveUp);
  const running = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async () => {
    await Promise.all(running.map((engine) => engine.stop()));
    ownBook?.release();
  };
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  const byName = new Map(running.map((engine) => [engine.name, engine]));
  const address = (name: EngineName) => byName.get(name)?.address ?? '';
  return {
    kafkaBrokers: address('kafka'),
    registryUrl: address('registry'),
    clickhouseUrl: address('clickhouse'),
    postgresUrl: address('postgres'),
    kinds: Object.fromEntries(running.map(({ name, kind }) => [name, kind])) as Engines['kinds'],
    pids: () => Object.fromEntries(running.map((engine) => [engine.name, engine.pid()])),
    stop,
    kill: () => running.map((engine) => engine.kill()),
  };
}

async function startEngine(
  name: EngineName,
  setting: EngineSetting,
  external: string | undefined,
  withDocker: boolean,
): Promise<Running> {
  if (external !== undefined) {
    setting.say(`${name}: using the one of ${ENGINE_VARIABLES[name]}`);
    return { name, kind: 'external', address: external, ...nothingToStop };
  }
  return withDocker ? startInContainer(name, setting) : startEmbedded(name, setting);
}

const nothingToStop = { pid: () => undefined, stop: async () => {}, kill: () => {} };

async function startInContainer(name: EngineName, setting: EngineSetting): Promise<Running> {
  const startedAt = Date.now();
  const port = await setting.ports.choose(name, setting.wantedPorts[name]);
  setting.say(`${name}: starting a container`);
  const { startContainer } = await import('./containers.ts');
  const { address, stop } = await startContainer(name, port);
  setting.say(`${name}: ready after ${seconds(startedAt)} s (container)`);
  return { ...nothingToStop, name, kind: 'container', address, stop };
}

async function startEmbedded(name: EngineName, setting: EngineSetting): Promise<Running> {
  const { say } = setting;
  const engine = await EMBEDDED[name](setting);
  setting.signal?.throwIfAborted();
  const startedAt = Date.now();
  const supervised: Supervised = await supervise({
    name,
    start: engine.start,
    ready: engine.ready,
    say,
    signal: setting.signal,
  });
  try {
    await supervised.ready;
  } catch (error) {
    await supervised.stop();
    throw error;
  }
  say(`${name}: ready after ${seconds(startedAt)} s at ${engine.address}`);
  const { pid, stop, kill } = supervised;
  return { name, kind: 'embedded', address: engine.address, pid, stop, kill };
}

function seconds(since: number): string {
  return ((Date.now() - since) / 1000).toFixed(1);
}
