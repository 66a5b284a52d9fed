import { createSchemaClient } from '../../schemas/registry.ts';
import type { CommonConfig } from '../config/common.ts';
import { connectionHint } from '../config/connection-hint.ts';
import type { Lifecycle } from '../run/run-process.ts';
import { retryForever } from '../timing/backoff.ts';
import { createKafkaClient } from './kafka-client.ts';
import { requireTopicSettings } from './topic-settings.ts';

/** The connections and settings that every process reading the log is built on. */
export type Context<C extends CommonConfig> = Awaited<ReturnType<typeof openContext<C>>>;

/**
 * Connects a process to the log and the registry. Waits while either is away or the topics are not
 * provisioned. @throws only when the process stops.
 */
export async function openContext<C extends CommonConfig>(
  name: string,
  config: C,
  life: Lifecycle,
) {
  const client = createKafkaClient(config.kafka, `pillole-${name}`, life.log);
  const schemas = createSchemaClient(config.registryUrl, config.namespace);
  const settings = await retryForever(
    () => requireTopicSettings(client, schemas, config.namespace),
    {
      firstMs: 200,
      maxMs: 3_000,
      signal: life.signal,
      onError: (error, attempts) =>
        life.log.warn(
          { err: error, attempts, hint: connectionHint(error) },
          'topic settings are not available yet',
        ),
    },
  );
  return { config, life, client, schemas, settings };
}
