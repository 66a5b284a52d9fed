import { randomUUID } from 'node:crypto';
import type { Ack } from '../lib/kafka/log-record.ts';
import { openProducer, PRODUCER_LIMITS } from '../lib/kafka/producer.ts';
import { readAll } from '../lib/kafka/read-all.ts';
import { nowMicros } from '../lib/timing/clock.ts';
import {
  createDecoder,
  createEncoder,
  type LatestPill,
  type RejectedRecord,
  type SchemaName,
  type SchemaValues,
} from '../schemas/avro.ts';
import { partitionOf } from '../schemas/partition.ts';
import type { PillRecord } from '../schemas/pill.ts';
import { type TopicId, topicName } from '../schemas/topic-catalogue.ts';
import type { Namespace } from './namespace.ts';

/** Makes a valid pill with the current time; `fields` replace its fields. */
export function makePill(fields: Partial<PillRecord> = {}): PillRecord {
  return {
    id: randomUUID(),
    timestamp: nowMicros(),
    symbol: '7203.T',
    gross_spread_percent: 0.125,
    market_state: 'open',
    confidence: 87.5,
    received_at: null,
    source: 'test',
    kind: null,
    ...fields,
  };
}

/** The deadline of a product is too short for a test on a busy machine, which must not lose a pill. */
const WRITE_DEADLINE_MS = 30_000;

/** Writes to the pills topic of a namespace, like a direct producer. */
export interface PillWriter {
  write(pills: readonly PillRecord[]): Promise<readonly Ack[]>;
  /** Writes any bytes to any partition. */
  writeRaw(partition: number, key: string, value: Buffer): Promise<Ack>;
  close(): Promise<void>;
}

export async function openPillWriter({
  client,
  schemas,
  settings,
  name,
}: Namespace): Promise<PillWriter> {
  const limits = { ...PRODUCER_LIMITS, deadlineMs: WRITE_DEADLINE_MS };
  const producer = await openProducer(client, limits);
  const encode = createEncoder('pill', await schemas.register('pills'));
  const topic = topicName(name, 'pills');
  return {
    write: (pills) =>
      producer.produce(
        pills.map((pill) => ({
          topic,
          partition: partitionOf(pill.symbol, settings.partitions),
          key: pill.symbol,
          value: encode(pill),
        })),
      ),
    async writeRaw(partition, key, value) {
      const [ack] = await producer.produce([{ topic, partition, key, value }]);
      return ack!;
    },
    close: producer.close,
  };
}

/** All records of the latest topic, in log order by partition. */
export function readLatest(namespace: Namespace): Promise<LatestPill[]> {
  return readValues(namespace, 'latest', 'latest-pill');
}

/** All records of the rejected topic. */
export function readRejected(namespace: Namespace): Promise<RejectedRecord[]> {
  return readValues(namespace, 'rejected', 'rejected-record');
}

async function readValues<N extends SchemaName>(
  { client, schemas, name }: Namespace,
  topic: TopicId,
  schema: N,
): Promise<SchemaValues[N][]> {
  await schemas.register(topic);
  const decoder = createDecoder(schema, schemas.writerSchemas);
  const records = await readAll(client, topicName(name, topic));
  return records.map(({ value }) => {
    const decoded = decoder.decode(value);
    if (!('ok' in decoded) || !decoded.ok) throw new Error(JSON.stringify(decoded));
    return decoded.value;
  });
}
