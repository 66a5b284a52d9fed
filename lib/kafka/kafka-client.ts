import {
  type Admin,
  Kafka,
  type KafkaConfig,
  logLevel,
  type RetryOptions,
  type SASLOptions,
} from 'kafkajs';
import type { KafkaCluster } from '../config/kafka-cluster.ts';
import type { Log } from '../log/log.ts';
import { mendRequestQueue } from './request-queue.ts';

mendRequestQueue();

/** Access to one Kafka cluster. The library behind it stays inside `lib/kafka`. */
export interface KafkaClient extends KafkaCluster {
  readonly clientId: string;
  readonly log: Log;
}

export function createKafkaClient(cluster: KafkaCluster, clientId: string, log: Log): KafkaClient {
  return { ...cluster, clientId, log: log.child({ part: 'kafka' }) };
}

const LEVELS = {
  [logLevel.NOTHING]: 'trace',
  [logLevel.ERROR]: 'debug',
  [logLevel.WARN]: 'debug',
  [logLevel.INFO]: 'trace',
  [logLevel.DEBUG]: 'trace',
} as const;

const CONNECT_MS = 1_000;
/** With the handshake, in which a broker that has just started loads its classes. */
const CONNECT_TLS_MS = 3_000;

interface LibraryLimits {
  readonly requestTimeoutMs: number;
  readonly retry: RetryOptions;
}

/**
 * The library's options. Its errors reach us as rejected promises and events, which are logged once,
 * where they are handled; its own lines (one per failed request) go to debug.
 */
export function libraryOptions(client: KafkaClient, limits: LibraryLimits) {
  const { tls, sasl } = client;
  return {
    brokers: fromRandom(client.brokers),
    clientId: client.clientId,
    // Copies: the library adds members to what it gets.
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } as SASLOptions }),
    connectionTimeout: tls === undefined ? CONNECT_MS : CONNECT_TLS_MS,
    requestTimeout: limits.requestTimeoutMs,
    retry: limits.retry,
    logLevel: logLevel.WARN,
    logCreator: () => (entry) => {
      const { message, ...rest } = entry.log;
      client.log[LEVELS[entry.level]]({ ...rest, namespace: entry.namespace }, message);
    },
  } satisfies KafkaConfig;
}

/**
 * Each handle begins at a random address. The library begins at the first one and goes on only when
 * the connection is refused, so a first broker that hangs would keep every new handle from the log.
 */
function fromRandom(brokers: readonly string[]): string[] {
  const start = Math.floor(Math.random() * brokers.length);
  return [...brokers.slice(start), ...brokers.slice(0, start)];
}

/** Opens the library's own handle. */
export function openKafka(client: KafkaClient, limits: LibraryLimits): Kafka {
  return new Kafka(libraryOptions(client, limits));
}

/** Connects an admin client, runs `use`, disconnects. */
export async function withAdmin<T>(
  client: KafkaClient,
  use: (admin: Admin) => Promise<T>,
): Promise<T> {
  const kafka = openKafka(client, {
    requestTimeoutMs: 10_000,
    retry: { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 },
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await use(admin);
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
}
