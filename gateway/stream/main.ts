import { retryForever } from '../../lib/backoff.ts';
import { nowMicros } from '../../lib/clock.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { runProcess } from '../../lib/run.ts';
import { requireTopicSettings } from '../../lib/settings.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { readStreamConfig } from './config.ts';
import { openStream } from './stream.ts';

await runProcess(
  'stream',
  () => readStreamConfig(process.env),
  async (config, life) => {
    const client = createKafkaClient(config.kafkaBrokers, 'pillole-stream', life.log);
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
    await openStream({ config, life, client, schemas, settings, nowMicros });
  },
);
