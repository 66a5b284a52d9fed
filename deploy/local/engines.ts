/**
 * The four engines everything else runs on. For each: the server its environment variable names,
 * else a container when a Docker engine answers, else the embedded one.
 */
import { embeddedClickhouse } from './clickhouse.ts';
import { dockerAnswers } from './docker.ts';
import type { EmbeddedEngine, EngineName, EnginePorts, EngineSetting } from './embedded.ts';
import { embeddedKafka } from './kafka.ts';
import type { Place } from './place.ts';
import { openPortBook, type PortBook } from './ports.ts';
import { embeddedPostgres } from './postgres.ts';
import { embeddedRegistry } from './registry.ts';
import { type Supervised, supervise } from './supervisor.ts';

export type { EngineName };
export type EngineKind = 'external' | 'container' | 'embedded';

export type EnginesOptions = {
  place: Place;
  /** Chosen and remembered ports; by default a book in `place`. */
  ports?: PortBook;
  /** Ports to ask for, 0 for any free one. */
  wantedPorts?: Partial<EnginePorts>;
  /** Embedded engines whatever the environment says (the tests). */
  embedded?: boolean;
  /** Progress and restarts, a line each. */
  say?: (line: string) => void;
  /** Gives up a start that is under way, and stops what runs. */
  signal?: AbortSignal;
};

export type Engines = {
  kafkaBrokers: string;
  registryUrl: string;
  clickhouseUrl: string;
  postgresUrl: string;
  kinds: Record<EngineName, EngineKind>;
  /** Pids of the embedded ones that live now. */
  pids(): Partial<Record<EngineName, number>>;
  /** Ends all that were started, within 5 s each, side by side. */
  stop(): Promise<void>;
  /** SIGKILL to the embedded ones. */
  kill(): void;
};

type Running = {
  name: EngineName;
  kind: EngineKind;
  address: string;
  pid(): number | undefined;
  stop(): Promise<void>;
  kill(): void;
};

export const DEFAULT_ENGINE_PORTS: EnginePorts = {
  kafka: 9092,
  controller: 9093,
  registry: 8085,
  clickhouse: 8123,
  postgres: 5432,
};

const VARIABLES: Record<EngineName, string> = {
  kafka: 'KAFKA_BROKERS',
  registry: 'SCHEMA_REGISTRY_URL',
  clickhouse: 'CLICKHOUSE_URL',
  postgres: 'DATABASE_URL',
};

const EMBEDDED: Record<EngineName, (setting: EngineSetting) => Promise<EmbeddedEngine>> = {
  kafka: embeddedKafka,
  registry: embeddedRegistry,
  clickhouse: embeddedClickhouse,
  postgres: embeddedPostgres,
};

const NAMES = Object.keys(EMBEDDED) as EngineName[];

/**
 * Starts what is needed, side by side, and keeps it running.
 * @throws Sorry or Error when one cannot be started; the others are stopped then.
 */
export async function startEngines(options: EnginesOptions): Promise<Engines> {
  const say = options.say ?? (() => {});
  const ownBook = options.ports === undefined ? openPortBook(options.place.ports) : undefined;
  const ports = options.ports ?? ownBook;
  if (ports === undefined) throw new Error('unreachable');
  const wantedPorts = { ...DEFAULT_ENGINE_PORTS, ...options.wantedPorts };
  const { place, signal } = options;
  const setting: EngineSetting = { place, ports, wantedPorts, say, signal };
  const withDocker = options.embedded !== true && (await dockerAnswers());

  const started = await Promise.allSettled(
    NAMES.map((name) => startEngine(name, setting, options.embedded === true, withDocker)),
  );
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
  onlyEmbedded: boolean,
  withDocker: boolean,
): Promise<Running> {
  const external = onlyEmbedded ? undefined : process.env[VARIABLES[name]];
  if (external !== undefined && external !== '') {
    setting.say(`${name}: using the one of ${VARIABLES[name]}`);
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
