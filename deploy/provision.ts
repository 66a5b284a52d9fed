import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrateDrainJobs } from '../domain/webhooks/deliveries/drain-jobs.ts';
import type { KafkaCluster } from '../lib/config/kafka-cluster.ts';
import { createKafkaClient, type KafkaClient } from '../lib/kafka/kafka-client.ts';
import { openProducer } from '../lib/kafka/producer.ts';
import { BACKFILL_AGE_MAX_MS, readTopicSettings } from '../lib/kafka/topic-settings.ts';
import { countPartitions, createTopics } from '../lib/kafka/topics.ts';
import { silentLog } from '../lib/log/log.ts';
import { MIGRATION_TIMEOUTS, openDatabase } from '../lib/postgres/database.ts';
import { migrate } from '../lib/postgres/migrate.ts';
import { grantRights } from '../lib/postgres/roles.ts';
import { nowMicros } from '../lib/timing/clock.ts';
import { createEncoder, type TopicSettings } from '../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../schemas/registry.ts';
import { TOPICS, type TopicId, type TopicSpec, topicName } from '../schemas/topic-catalogue.ts';
import { migrateClickHouse } from './provision-clickhouse.ts';

export interface ProvisionOptions {
  readonly kafkaBrokers: string;
  /** By default connections in clear. */
  readonly kafkaSecurity?: Omit<KafkaCluster, 'brokers'>;
  readonly registryUrl: string;
  readonly clickhouseUrl: string;
  readonly postgresUrl: string;
  readonly namespace: string;
  /** Settings of a new epoch; an existing epoch keeps its own. */
  readonly settings?: Partial<Omit<TopicSettings, 'epoch' | 'created_at'>>;
}

/** Default settings of a new epoch. */
export const DEFAULT_SETTINGS = {
  partitions: 12,
  repeat_window: 32_768,
  backfill_age_ms: 60_000,
  confidence_max: 100,
  symbols_max: 100_000,
} as const satisfies Omit<TopicSettings, 'epoch' | 'created_at'>;

/** Some 10 s: the registry may have just started, on a busy machine. */
const REGISTER_TRIES = 50;

/** How long a provisioner waits until the creator of the meta topic has written the settings. */
const OTHER_PROVISIONER_MS = 5_000;

/**
 * Creates what the processes need: topics, the epoch and its settings, schemas, tables. May run at
 * any time, also several times at once; existing objects stay as they are.
 * @returns the settings in force
 * @throws Error when a setting is out of bounds, before anything is created
 */
export async function provision(options: ProvisionOptions): Promise<TopicSettings> {
  checkBackfillAge(options.settings?.backfill_age_ms ?? DEFAULT_SETTINGS.backfill_age_ms);
  const client = createKafkaClient(
    { ...options.kafkaSecurity, brokers: options.kafkaBrokers.split(',') },
    'provision',
    silentLog,
  );
  const schemas = createSchemaClient(options.registryUrl, options.namespace);
  const [settings] = await Promise.all([
    provisionLog(client, schemas, options),
    migrateClickHouse(options),
    migratePostgres(options),
  ]);
  return settings;
}

/**
 * Creates our tables, then those of the queue, which its library keeps in a schema of its own, and
 * grants the roles of the processes their rights in both.
 */
export async function migratePostgres({
  postgresUrl,
  namespace,
}: Pick<ProvisionOptions, 'postgresUrl' | 'namespace'>): Promise<void> {
  await migrate(postgresUrl, namespace);
  await migrateDrainJobs(postgresUrl, namespace);
  const db = openDatabase({
    url: postgresUrl,
    namespace,
    name: 'migrate-rights',
    log: silentLog,
    connectionsMax: 1,
    timeouts: MIGRATION_TIMEOUTS,
  });
  try {
    await grantRights(db, namespace);
  } finally {
    await db.destroy();
  }
}

function checkBackfillAge(ms: number): void {
  if (ms >= 0 && ms <= BACKFILL_AGE_MAX_MS) return;
  throw new Error(
    `backfill_age_ms is ${ms}: give 0 to ${BACKFILL_AGE_MAX_MS} (7 days), on which the views rely.`,
  );
}

async function provisionLog(
  client: KafkaClient,
  schemas: SchemaClient,
  options: ProvisionOptions,
): Promise<TopicSettings> {
  const { namespace } = options;
  const initial = { ...DEFAULT_SETTINGS, ...options.settings };
  const created = await createTopics(
    client,
    (Object.keys(TOPICS) as TopicId[]).map((id) => topicRequest(namespace, id, initial.partitions)),
  );
  for (const id of Object.keys(TOPICS) as TopicId[]) await schemas.register(id, REGISTER_TRIES);

  const isOurs = created.includes(topicName(namespace, 'meta'));
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
    ...initial,
    partitions: await countPartitions(client, topicName(namespace, 'pills')),
  };
  const encode = createEncoder('topic-settings', await schemas.register('meta', REGISTER_TRIES));
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
    `${topic} has ${count} partitions, but its epoch ${settings.epoch} was created with ` +
      `${settings.partitions}. Another count requires a new epoch: see deploy/runbooks/epoch.md.`,
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
