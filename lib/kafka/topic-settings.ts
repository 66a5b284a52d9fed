import { createDecoder, type TopicSettings } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import type { KafkaClient } from './kafka-client.ts';
import { readAll } from './read-all.ts';

/**
 * Largest `backfill_age_ms`: 7 days. The ClickHouse tables rely on this bound for how much older than
 * its receive time the timestamp of a live pill can be (deploy/sql/clickhouse/0017-intervals.sql).
 */
export const BACKFILL_AGE_MAX_MS = 604_800_000;

/**
 * Reads the settings that decide effect from the meta topic; the last record is in force.
 * @returns undefined when the topic is empty.
 * @throws when the log or the registry does not answer, or the record does not decode.
 */
export async function readTopicSettings(
  client: KafkaClient,
  schemas: SchemaClient,
  namespace: string,
): Promise<TopicSettings | undefined> {
  const records = await readAll(client, topicName(namespace, 'meta'));
  const last = records.at(-1);
  if (last === undefined) return undefined;
  const decoder = createDecoder('topic-settings', schemas.writerSchemas);
  let decoded = decoder.decode(last.value);
  if ('pendingSchema' in decoded) {
    await schemas.load(decoded.pendingSchema);
    decoded = decoder.decode(last.value);
  }
  if (!('ok' in decoded) || !decoded.ok) {
    throw new Error(`The topic settings do not decode: ${JSON.stringify(decoded)}.`);
  }
  return decoded.value;
}

/** As `readTopicSettings`. @throws for an empty topic, naming the command to run. */
export async function requireTopicSettings(
  client: KafkaClient,
  schemas: SchemaClient,
  namespace: string,
): Promise<TopicSettings> {
  const settings = await readTopicSettings(client, schemas, namespace);
  if (settings !== undefined) return settings;
  throw new Error('The topics are not provisioned: run "npm run provision".');
}
