import { GenericContainer, Wait } from 'testcontainers';
import type { EngineName } from './config.ts';
import type { Passwords } from './passwords.ts';
import { DATABASE, postgresAddress } from './postgres.ts';

const STARTUP_TIMEOUT_MS = 180_000;
const STOP_TIMEOUT_MS = 4_000;

/**
 * Starts one engine as a container on a free port of this machine; its data is lost with the
 * container. The reaper of testcontainers removes the container when this process ends, however it
 * ends. This module is loaded only if a Docker engine answers.
 */
export async function startContainer(
  name: EngineName,
  port: number,
  passwords: Passwords,
): Promise<{ readonly address: string; readonly stop: () => Promise<void> }> {
  const { container, address } = RECIPES[name](port, passwords);
  const started = await container.withStartupTimeout(STARTUP_TIMEOUT_MS).start();
  return {
    address: address(started.getHost()),
    stop: async () => {
      await started.stop({ timeout: STOP_TIMEOUT_MS });
    },
  };
}

const RECIPES: Readonly<
  Record<
    EngineName,
    (
      port: number,
      passwords: Passwords,
    ) => {
      readonly container: GenericContainer;
      readonly address: (host: string) => string;
    }
  >
> = {
  kafka: (port) => ({
    // The broker advertises its address, so the host port must be known before the start.
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
  clickhouse: (port, { clickhouse }) => ({
    container: new GenericContainer('clickhouse/clickhouse-server:26.3')
      .withExposedPorts({ container: 8123, host: port })
      .withEnvironment({
        CLICKHOUSE_USER: 'default',
        CLICKHOUSE_PASSWORD: clickhouse,
        CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT: '1',
      })
      .withWaitStrategy(Wait.forHttp('/ping', 8123)),
    address: (host) => `http://default:${clickhouse}@${host}:${port}`,
  }),
  postgres: (port, passwords) => ({
    container: new GenericContainer('postgres:18')
      .withExposedPorts({ container: 5432, host: port })
      .withEnvironment({ POSTGRES_PASSWORD: passwords.postgres, POSTGRES_DB: DATABASE })
      // The image starts the server once for its own set-up, and then a second time.
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2)),
    address: () => postgresAddress(port, passwords),
  }),
};
