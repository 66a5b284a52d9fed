import { retryForever } from '../lib/backoff.ts';
import { createKafkaClient } from '../lib/kafka/client.ts';
import { type Life, runProcess } from '../lib/run.ts';
import { requireTopicSettings } from '../lib/settings.ts';
import { createSchemaClient } from '../schemas/registry.ts';
import { startAnalytics } from './analytics/processor.ts';
import { type PipelineConfig, readPipelineConfig } from './config.ts';
import { startLatest } from './latest/processor.ts';
import type { ProcessorContext } from './processor.ts';
import { TOPOLOGY } from './topology.ts';

const START = { latest: startLatest, analytics: startAnalytics };

const [, , name = ''] = process.argv;

if (name === 'latest' || name === 'analytics') {
  await runProcess(
    name,
    () => readPipelineConfig(process.env, name === 'analytics'),
    async (config, life) => START[name](await createContext(config, life)),
  );
} else {
  const known = Object.keys(TOPOLOGY).join(', ');
  process.stderr.write(`Usage: main.js <processor>. There is no processor "${name}": ${known}.\n`);
  process.exit(2);
}

async function createContext(config: PipelineConfig, life: Life): Promise<ProcessorContext> {
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
