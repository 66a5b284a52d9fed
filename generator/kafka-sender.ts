import type { KafkaClient } from '../lib/kafka/kafka-client.ts';
import { openProducer } from '../lib/kafka/producer.ts';
import { requireTopicSettings } from '../lib/kafka/topic-settings.ts';
import { nowMicros } from '../lib/timing/clock.ts';
import { createEncoder } from '../schemas/avro.ts';
import { createPartitioner } from '../schemas/partition.ts';
import { checkPill, type Pill } from '../schemas/pill.ts';
import type { SchemaClient } from '../schemas/registry.ts';
import { topicName } from '../schemas/topic-catalogue.ts';
import { type Attempt, NO_EFFECT, sendWithRetries } from './retry.ts';
import type { NotOk, RetryPolicy, Sender } from './sender.ts';

interface Row {
  readonly index: number;
  readonly pill: Pill;
}

/**
 * Writes Avro to the pills topic, bypassing the gateway. No answer refuses a bad record there, so the
 * pills are first checked by the gateway's rules. Only consumers detect repeats: `replayed` stays 0.
 */
export async function openKafkaSender({
  client,
  schemas,
  namespace,
  source,
  retry,
}: {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  /** The pills' `source`. */
  readonly source: string;
  readonly retry: RetryPolicy;
}): Promise<Sender> {
  const settings = await requireTopicSettings(client, schemas, namespace);
  const encode = createEncoder('pill', await schemas.register('pills'));
  const partitionOf = createPartitioner(settings.partitions);
  const producer = await openProducer(client);
  const topic = topicName(namespace, 'pills');

  const attempt = async (rows: readonly Row[]): Promise<Attempt<Row>> => {
    if (rows.length === 0) return NO_EFFECT;
    const records = rows.map(({ pill }) => ({
      topic,
      partition: partitionOf(pill.symbol),
      key: pill.symbol,
      value: encode({ ...pill, received_at: null, source, kind: null }),
    }));
    try {
      await producer.produce(records);
      return { ...NO_EFFECT, ok: rows.length };
    } catch (error) {
      return { ...NO_EFFECT, retry: rows, reason: (error as Error).message };
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
      const sent = await sendWithRetries(rows, retry, attempt);
      return { ...sent, refused };
    },
    close: producer.close,
  };
}
