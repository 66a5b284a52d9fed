import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import type { EngineName } from './config.ts';

export interface ContainerEngine {
  readonly address: string;
  stop(): Promise<void>;
}

const STARTUP_TIMEOUT_MS = 180_000;
const STOP_TIMEOUT_MS = 4_000;

/**
 * Starts one engine as a container on a free port of this machine; its data lives as long as the
 * container. testcontainers' reaper removes it after this process, whatever ended that. Loaded only
 * where a Docker engine answers.
 */
export async function startContainer(name: EngineName, port: number): Promise<ContainerEngine> {
  const { container, address } = RECIPES[name](port);
  const started: StartedTestContainer = await container
    .withStartupTimeout(STARTUP_TIMEOUT_MS)
    .start();
  return {
    address: address(started.getHost()),
    stop: async () => {
      await started.stop({ timeout: STOP_TIMEOUT_MS });
    },
  };
}

interface Recipe {
  readonly container: GenericContainer;
  readonly address: (host: string) => string;
}

const RECIPES: Readonly<Record<EngineName, (port: number) => Recipe>> = {
  kafka: (port) => ({
    // The broker tells clients its address: the port outside must be known before it starts.
    container: new GenericContainer('apache/kafka:4.3.1')
      .withExposedPorts({ container: 9092, host: port })
      .withEnvironment({
        KAFKA_NODE_ID: '1',
        KAFKA_PROCESS_ROLES: 'broker,controller',
        KAFKA_LISTENERS: 'BROKER://:9092,CONTROLLER://:9093',
        KAFKA_ADVERTISED_LISTENERS: `BROKER://127.0.0.1:${port}`,
        KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
        KAFKA_INTER_BROKER_LISTENER_NAME: 'BROKER',
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
        KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
        KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
        KAFKA_LOG_RETENTION_HOURS: '-1',
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
        KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR: '1',
        KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR: '1',
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
        KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS: '1000',
      })
      .withWaitStrategy(Wait.forLogMessage(/Kafka Server started/)),
    address: () => `127.0.0.1:${port}`,
  }),
  registry: (port) => ({
    container: new GenericContainer('apicurio/apicurio-registry:3.0.9')
      .withExposedPorts({ container: 8080, host: port })
      .withWaitStrategy(Wait.forHttp('/apis/ccompat/v7/subjects', 8080)),
    address: (host) => `http://${host}:${port}/apis/ccompat/v7`,
  }),
  clickhouse: (port) => ({
    container: new GenericContainer('clickhouse/clickhouse-server:26.3')
      .withExposedPorts({ container: 8123, host: port })
      .withEnvironment({ CLICKHOUSE_SKIP_USER_SETUP: '1' })
      .withWaitStrategy(Wait.forHttp('/ping', 8123)),
    address: (host) => `http://${host}:${port}`,
  }),
  postgres: (port) => ({
    container: new GenericContainer('postgres:18')
      .withExposedPorts({ container: 5432, host: port })
      .withEnvironment({ POSTGRES_HOST_AUTH_METHOD: 'trust', POSTGRES_DB: 'pillole' })
      // The image starts the server once for its own set-up, then for good.
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2)),
    address: (host) => `postgres://postgres@${host}:${port}/pillole`,
  }),
};
