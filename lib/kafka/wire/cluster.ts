import { createRequire } from 'node:module';
import { type KafkaClient, libraryOptions } from '../kafka-client.ts';

/** A request in our own code, sent over the library's connection. */
export interface WireRequest<T> {
  readonly name: string;
  readonly key: number;
  readonly version: number;
  encode(): Buffer;
  decode(payload: Buffer): { readonly data: T; readonly throttleMs: number };
}

/** The parts of kafkajs's internals that are used here; they are not in its types. */
interface LibraryBroker {
  readonly versions: Readonly<Record<number, { minVersion: number; maxVersion: number }>>;
  readonly connectionPool: { send(call: LibraryCall): Promise<unknown> };
}
interface LibraryCall {
  readonly request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    encode(): Promise<unknown>;
  };
  readonly response: {
    decode(payload: Buffer): Promise<object>;
    parse(decoded: object): Promise<unknown>;
  };
  readonly requestTimeout: number;
  readonly logResponseError: boolean;
}
interface LibraryCluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>;
  refreshMetadata(): Promise<void>;
  refreshMetadataIfNecessary(): Promise<void>;
  findBroker(of: { nodeId: string }): Promise<LibraryBroker>;
  findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number }[];
}
type Load = (path: string) => unknown;

/** Metadata is asked for again after this time, as the library does it. */
const METADATA_MAX_AGE_MS = 300_000;

export type Cluster = ReturnType<typeof openCluster>;

/**
 * The library's connections to the brokers of a cluster, for requests in our own code: the library
 * connects, authenticates, correlates, obeys throttling (KIP-219) and keeps the metadata. Nothing
 * is connected before `connect`.
 * @param requestTimeoutMs of the library's own requests; a connection without an answer fails
 */
export function openCluster(client: KafkaClient, requestTimeoutMs: number) {
  const load: Load = createRequire(import.meta.url);
  const Cluster = load('kafkajs/src/cluster') as new (options: object) => LibraryCluster;
  const { createLogger } = load('kafkajs/src/loggers') as {
    createLogger(of: object): unknown;
  };
  const createSockets = load('kafkajs/src/network/socketFactory') as () => unknown;
  const { logLevel, logCreator, ...options } = libraryOptions(client, {
    requestTimeoutMs,
    retry: { retries: 0, initialRetryTime: 50, maxRetryTime: 100 },
  });
  const cluster = new Cluster({
    ...options,
    logger: createLogger({ level: logLevel, logCreator }),
    socketFactory: createSockets(),
    metadataMaxAge: METADATA_MAX_AGE_MS,
    allowAutoTopicCreation: false,
  });
  const topics = new Set<string>();

  return {
    connect: () => cluster.connect(),
    disconnect: () => cluster.disconnect(),
    refresh: () => cluster.refreshMetadata(),
    /** Loads the metadata of topics that are new here, and of all when it is old. */
    async follow(names: Iterable<string>): Promise<void> {
      const added = [...names].filter((name) => !topics.has(name));
      if (added.length === 0) return cluster.refreshMetadataIfNecessary();
      await cluster.addMultipleTargetTopics(added);
      for (const name of added) topics.add(name);
    },
    /** The node that leads a partition; undefined while none does. */
    leaderOf(topic: string, partition: number): string | undefined {
      const known = cluster.findTopicPartitionMetadata(topic);
      const leader = known.find(({ partitionId }) => partitionId === partition)?.leader;
      return leader === undefined || leader < 0 ? undefined : String(leader);
    },
    /** @throws the library's error, and Error if the broker does not speak the version */
    async send<T>(node: string, wire: WireRequest<T>, timeoutMs: number): Promise<T> {
      const broker = await cluster.findBroker({ nodeId: node });
      requireVersion(broker, wire);
      const request = {
        ...{ apiKey: wire.key, apiVersion: wire.version, apiName: wire.name },
        async encode() {
          const bytes = wire.encode();
          // What the library reads of its own encoder.
          return { buf: bytes, buffer: bytes };
        },
      };
      const response = {
        async decode(payload: Buffer) {
          const { data, throttleMs } = wire.decode(payload);
          return { data, clientSideThrottleTime: throttleMs };
        },
        parse: async (decoded: object) => (decoded as { data: T }).data,
      };
      const call = { request, response, requestTimeout: timeoutMs, logResponseError: false };
      return (await broker.connectionPool.send(call)) as T;
    },
  };
}

function requireVersion({ versions }: LibraryBroker, wire: WireRequest<unknown>): void {
  const { name, key, version } = wire;
  const offered = versions[key];
  if (offered !== undefined && offered.minVersion <= version && version <= offered.maxVersion) {
    return;
  }
  const range = offered === undefined ? 'none' : `${offered.minVersion}–${offered.maxVersion}`;
  throw new Error(`The broker has no ${name} ${version} (its versions: ${range}).`);
}
