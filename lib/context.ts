import type { TopicSettings } from '../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../schemas/registry.ts';
import { retryForever } from './backoff.ts';
import type { CommonConfig } from './config.ts';
import { createKafkaClient, type KafkaClient } from './kafka/client.ts';
import type { Life } from './run.ts';
import { requireTopicSettings } from './settings.ts';

/** What a process that reads the log is built on. */
export interface Context<C extends CommonConfig> {
  readonly config: C;
  readonly life: Life;
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly settings: TopicSettings;
}

/**
 * Connects a process to the log and the registry; waits for as long as they are away or the topics
 * are not provisioned. @throws only when the process stops.
 */
export async function openContext<C extends CommonConfig>(
  name: string,
  config: C,
  life: Life,
): Promise<Context<C>> {
  const client = createKafkaClient(config.kafkaBrokers, `pillole-${name}`, life.log);
  const schemas = createSchemaClient(config.registryUrl, config.namespace);
  const settings = await retryForever(
    () => requireTopicSettings(client, schemas, config.namespace),
    {
      firstMs: 200,
      maxMs: 3_000,
      signal: life.signal,
      onError: (error, attempts) =>
        life.log.warn({ err: error, attempts }, 'no topic settings yet'),
    },
  );
  return { config, life, client, schemas, settings };
}
