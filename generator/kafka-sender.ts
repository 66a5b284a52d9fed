import { nowMicros } from '../lib/clock.ts';
import type { KafkaClient } from '../lib/kafka/client.ts';
import { openProducer } from '../lib/kafka/producer.ts';
import { requireTopicSettings } from '../lib/settings.ts';
import { createEncoder } from '../schemas/avro.ts';
import { createPartitioner } from '../schemas/partition.ts';
import { checkPill, type Pill } from '../schemas/pill.ts';
import type { SchemaClient } from '../schemas/registry.ts';
import { topicName } from '../schemas/topics.ts';
import { type Attempt, sendWithRetries } from './retry.ts';
import type { NotOk, RetryPolicy, Sender } from './sender.ts';

export interface KafkaSenderOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  /** Told as the pill's `source`. */
  readonly source: string;
  readonly retry: RetryPolicy;
}

interface Row {
  readonly index: number;
  readonly pill: Pill;
}

/**
 * Writes Avro to the pills topic, past the gateway. Nobody answers for a bad record there, so the
 * pills are checked here by the gateway's rules first. Repeats are told by consumers alone:
 * `replayed` stays 0.
 */
export async function openKafkaSender(options: KafkaSenderOptions): Promise<Sender> {
  const { client, schemas, namespace, source } = options;
  const settings = await requireTopicSettings(client, schemas, namespace);
  const encode = createEncoder('pill', await schemas.register('pills'));
  const partitionOf = createPartitioner(settings.partitions);
  const producer = await openProducer(client);
  const topic = topicName(namespace, 'pills');

  const attempt = async (rows: readonly Row[]): Promise<Attempt<Row>> => {
    const nothing = { ok: 0, replayed: 0, refused: [], retry: [], reason: '', retryAfterMs: 0 };
    if (rows.length === 0) return nothing;
    const records = rows.map(({ pill }) => ({
      topic,
      partition: partitionOf(pill.symbol),
      key: pill.symbol,
      value: encode({ ...pill, received_at: null, source, kind: null }),
    }));
    try {
      await producer.produce(records);
      return { ...nothing, ok: rows.length };
    } catch (error) {
      return { ...nothing, retry: rows, reason: (error as Error).message };
    }
  };
  return {
    async send(pills) {
      const rules = { confidenceMax: settings.confidence_max, now: nowMicros() };
      const refused: NotOk[] = [];
      const rows: Row[] = [];
      pills.forEach((pill, index) => {
        const [fault] = checkPill(pill, rules);
        if (fault === undefined) rows.push({ index, pill });
        else refused.push({ index, reason: `${fault.pointer} ${fault.code} ${fault.detail}` });
      });
      const sent = await sendWithRetries(rows, options.retry, attempt);
      return { ...sent, refused };
    },
    close: () => producer.close(),
  };
}
