import type { KafkaClient } from '../lib/kafka/client.ts';
import type { Life } from '../lib/run.ts';
import type { TopicSettings } from '../schemas/avro.ts';
import type { SchemaClient } from '../schemas/registry.ts';
import type { PipelineConfig } from './config.ts';

/** What every processor is given. */
export interface ProcessorContext {
  readonly config: PipelineConfig;
  readonly life: Life;
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly settings: TopicSettings;
}
