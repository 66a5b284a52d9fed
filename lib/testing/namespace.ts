import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { type ProvisionOptions, provision } from '../../deploy/provision.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../../schemas/registry.ts';
import { createKafkaClient, type KafkaClient } from '../kafka/client.ts';
import { silentLog } from '../log.ts';

/** Addresses of the engines of this test run. */
export interface TestEngines {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly clickhouseUrl: string;
  readonly postgresUrl: string;
  /** Pepper of the keys that tests make. */
  readonly pepperFile: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    engines: TestEngines;
  }
}

/** Topics, subjects, groups and a database of a test's own, on the run's real engines. */
export interface Namespace {
  readonly name: string;
  readonly engines: TestEngines;
  readonly settings: TopicSettings;
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  /** Environment of a process that works in this namespace. */
  readonly env: Readonly<Record<string, string>>;
}

/** The real engines that the test run has started. */
export function testEngines(): TestEngines {
  return inject('engines');
}

/** Makes a namespace nobody else uses; three partitions unless said otherwise. */
export async function createNamespace(
  settings: ProvisionOptions['settings'] = {},
): Promise<Namespace> {
  const engines = testEngines();
  const name = `t${randomUUID().slice(0, 8)}`;
  const made = await provision({
    ...engines,
    namespace: name,
    settings: { partitions: 3, ...settings },
  });
  return {
    name,
    engines,
    settings: made,
    client: createKafkaClient(engines.kafkaBrokers.split(','), `test-${name}`, silentLog),
    schemas: createSchemaClient(engines.registryUrl, name),
    env: {
      KAFKA_BROKERS: engines.kafkaBrokers,
      SCHEMA_REGISTRY_URL: engines.registryUrl,
      CLICKHOUSE_URL: engines.clickhouseUrl,
      DATABASE_URL: engines.postgresUrl,
      KEY_PEPPER_FILE: engines.pepperFile,
      PILLOLE_NAMESPACE: name,
      LOG_LEVEL: 'info',
    },
  };
}
