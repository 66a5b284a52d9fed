import { randomUUID } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';
import { type ProvisionOptions, provision } from '../deploy/provision.ts';
import { createKafkaClient, type KafkaClient } from '../lib/kafka/kafka-client.ts';
import { silentLog } from '../lib/log/log.ts';
import type { TopicSettings } from '../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../schemas/registry.ts';
import { testEngine, testPepperFile } from './engine-addresses.ts';

/** Addresses of the engines of this test run. */
export interface TestEngines {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly clickhouseUrl: string;
  readonly postgresUrl: string;
  /** File with the pepper of test keys. */
  readonly pepperFile: string;
}

/** Topics, subjects, groups and a database for one test file, on the real engines of the run. */
export interface Namespace {
  readonly name: string;
  readonly engines: TestEngines;
  readonly settings: TopicSettings;
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  /** Environment of a process in this namespace. */
  readonly env: Readonly<Record<string, string>>;
}

/** The four real engines of the test run. */
export function testEngines(): TestEngines {
  return {
    kafkaBrokers: testEngine('kafka'),
    registryUrl: testEngine('registry'),
    clickhouseUrl: testEngine('clickhouse'),
    postgresUrl: testEngine('postgres'),
    pepperFile: testPepperFile(),
  };
}

/** A name of a namespace that is not in use. */
export const newNamespaceName = () => `t${randomUUID().slice(0, 8)}`;

/**
 * Creates an unused namespace, with three partitions by default.
 * @param clickhouseUrl a server of its own instead of the run's
 */
export async function createNamespace(
  settings: ProvisionOptions['settings'] = {},
  name = newNamespaceName(),
  clickhouseUrl?: string,
): Promise<Namespace> {
  const ofRun = testEngines();
  const engines = { ...ofRun, clickhouseUrl: clickhouseUrl ?? ofRun.clickhouseUrl };
  const made = await provision({
    ...engines,
    namespace: name,
    settings: { partitions: 3, ...settings },
  });
  return {
    name,
    engines,
    settings: made,
    client: createKafkaClient(
      { brokers: engines.kafkaBrokers.split(',') },
      `test-${name}`,
      silentLog,
    ),
    schemas: createSchemaClient(engines.registryUrl, name),
    env: {
      KAFKA_BROKERS: engines.kafkaBrokers,
      SCHEMA_REGISTRY_URL: engines.registryUrl,
      CLICKHOUSE_URL: engines.clickhouseUrl,
      DATABASE_URL: engines.postgresUrl,
      KEY_PEPPER_FILE: engines.pepperFile,
      PILLOLE_NAMESPACE: name,
      EXPORTS_FOLDER: path.join(os.tmpdir(), `pillole-exports-${name}`),
      LOG_LEVEL: 'info',
    },
  };
}
