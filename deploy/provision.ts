import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseName, openClickHouse } from '../lib/clickhouse.ts';
import { nowMicros } from '../lib/clock.ts';
import { createKafkaClient, type KafkaClient } from '../lib/kafka/client.ts';
import { openProducer } from '../lib/kafka/producer.ts';
import { countPartitions, createTopics } from '../lib/kafka/topics.ts';
import { silentLog } from '../lib/log.ts';
import { migrate } from '../lib/postgres/migrate.ts';
import { packageRoot } from '../lib/root.ts';
import { BACKFILL_AGE_MAX_MS, readTopicSettings } from '../lib/settings.ts';
import { migrateQueue } from '../lib/webhooks/queue.ts';
import { createEncoder, type TopicSettings } from '../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../schemas/registry.ts';
import { TOPICS, type TopicId, type TopicSpec, topicName } from '../schemas/topics.ts';

export interface ProvisionOptions {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly clickhouseUrl: string;
  readonly postgresUrl: string;
  readonly namespace: string;
  /** What a new epoch begins with; an existing one keeps its own. */
  readonly settings?: Partial<Omit<TopicSettings, 'epoch' | 'created_at'>>;
}

/** Settings of a new epoch. */
export const DEFAULT_SETTINGS = {
  partitions: 12,
  repeat_window: 32_768,
  backfill_age_ms: 60_000,
  confidence_max: 100,
  symbols_max: 100_000,
} as const satisfies Omit<TopicSettings, 'epoch' | 'created_at'>;

/** How long a provisioner waits for the one that made the meta topic to write the settings. */
const OTHER_PROVISIONER_MS = 5_000;

/**
 * Makes what the processes need: topics, the epoch and its settings, schemas, tables. Can be run
 * at any time, also by several at once; what exists is left as it is.
 * @returns the settings in force.
 * @throws Error before anything is made, when a setting is out of its bounds.
 */
export async function provision(options: ProvisionOptions): Promise<TopicSettings> {
  checkBackfillAge(options.settings?.backfill_age_ms ?? DEFAULT_SETTINGS.backfill_age_ms);
  const client = createKafkaClient(options.kafkaBrokers.split(','), 'provision', silentLog);
  const schemas = createSchemaClient(options.registryUrl, options.namespace);
  const [settings] = await Promise.all([
    provisionLog(client, schemas, options),
    migrateClickHouse(options),
    migratePostgres(options),
  ]);
  return settings;
}

/** Our tables, then those of the queue, which its library makes in a schema of their own. */
async function migratePostgres({ postgresUrl, namespace }: ProvisionOptions): Promise<void> {
  await migrate(postgresUrl, namespace);
  await migrateQueue(postgresUrl, namespace);
}

function checkBackfillAge(ms: number): void {
  if (ms >= 0 && ms <= BACKFILL_AGE_MAX_MS) return;
  throw new Error(
    `backfill_age_ms is ${ms}: give 0 to ${BACKFILL_AGE_MAX_MS} (7 days), the views rely on it.`,
  );
}

async function provisionLog(
  client: KafkaClient,
  schemas: SchemaClient,
  options: ProvisionOptions,
): Promise<TopicSettings> {
  const { namespace } = options;
  const wanted = { ...DEFAULT_SETTINGS, ...options.settings };
  const made = await createTopics(
    client,
    (Object.keys(TOPICS) as TopicId[]).map((id) => topicRequest(namespace, id, wanted.partitions)),
  );
  for (const id of Object.keys(TOPICS) as TopicId[]) await schemas.register(id);

  const isOurs = made.includes(topicName(namespace, 'meta'));
  const deadline = performance.now() + (isOurs ? 0 : OTHER_PROVISIONER_MS);
  for (;;) {
    const known = await readTopicSettings(client, schemas, namespace);
    if (known !== undefined) return checkPartitions(client, namespace, known);
    if (performance.now() >= deadline) break;
    await sleep(200);
  }
  const settings: TopicSettings = {
    epoch: newEpoch(),
    created_at: nowMicros(),
    ...wanted,
    partitions: await countPartitions(client, topicName(namespace, 'pills')),
  };
  const encode = createEncoder('topic-settings', await schemas.register('meta'));
  const producer = await openProducer(client);
  const topic = topicName(namespace, 'meta');
  await producer.produce([
    { topic, partition: 0, key: TOPICS.pills.name, value: encode(settings) },
  ]);
  await producer.close();
  return settings;
}

async function checkPartitions(
  client: KafkaClient,
  namespace: string,
  settings: TopicSettings,
): Promise<TopicSettings> {
  const topic = topicName(namespace, 'pills');
  const count = await countPartitions(client, topic);
  if (count === settings.partitions) return settings;
  throw new Error(
    `${topic} has ${count} partitions, its epoch ${settings.epoch} was made with ` +
      `${settings.partitions}. Another count needs a new epoch: see deploy/runbooks/epoch.md.`,
  );
}

function topicRequest(namespace: string, id: TopicId, pillPartitions: number) {
  const spec: TopicSpec = TOPICS[id];
  return {
    name: topicName(namespace, id),
    partitions: spec.partitions === 'pills' ? pillPartitions : spec.partitions,
    config: {
      'cleanup.policy': spec.compacted ? 'compact' : 'delete',
      'retention.ms': String(spec.retentionMs),
      ...spec.config,
    },
  };
}

function newEpoch(): string {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789';
  return Array.from({ length: 6 }, () => letters[randomInt(letters.length)]).join('');
}

/** Applies the numbered SQL files of deploy/sql/clickhouse; each holds one idempotent statement. */
async function migrateClickHouse(options: ProvisionOptions): Promise<void> {
  const database = databaseName(options.namespace);
  const server = openClickHouse({ url: options.clickhouseUrl, database: 'default' });
  const client = openClickHouse({ url: options.clickhouseUrl, database });
  try {
    await server.command({ query: `CREATE DATABASE IF NOT EXISTS ${database}` });
    const folder = path.join(packageRoot, 'deploy', 'sql', 'clickhouse');
    for (const file of readdirSync(folder)
      .filter((name) => name.endsWith('.sql'))
      .sort()) {
      await client.command({ query: readFileSync(path.join(folder, file), 'utf8') });
    }
  } finally {
    await Promise.all([server.close(), client.close()]);
  }
}
