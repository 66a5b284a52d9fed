import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { expect, test } from 'vitest';
import {
  customersDatabaseName,
  databaseName,
  openClickHouse,
} from '../lib/clickhouse/clickhouse-client.ts';
import { createKafkaClient, withAdmin } from '../lib/kafka/kafka-client.ts';
import { readAll } from '../lib/kafka/read-all.ts';
import { BACKFILL_AGE_MAX_MS } from '../lib/kafka/topic-settings.ts';
import { countPartitions } from '../lib/kafka/topics.ts';
import { silentLog } from '../lib/log/log.ts';
import { schemaText } from '../schemas/avro.ts';
import {
  subjectName,
  TOPICS,
  type TopicId,
  type TopicSpec,
  topicName,
} from '../schemas/topic-catalogue.ts';
import { testEngines } from '../testing/namespace.ts';
import { provision } from './provision.ts';

const topicIds = Object.keys(TOPICS) as TopicId[];

function newNamespace() {
  const engines = testEngines();
  const namespace = `p${randomUUID().slice(0, 8)}`;
  const client = createKafkaClient(
    { brokers: engines.kafkaBrokers.split(',') },
    'provision-test',
    silentLog,
  );
  return { engines, namespace, client };
}

test('three concurrent provisioners and a later one agree on one epoch and one record of settings', async () => {
  const { engines, namespace, client } = newNamespace();
  const options = { ...engines, namespace, settings: { partitions: 3, backfill_age_ms: 5_000 } };
  const made = await Promise.all([provision(options), provision(options), provision(options)]);
  const again = await provision({ ...engines, namespace });
  expect(new Set([...made, again].map(({ epoch }) => epoch)).size).toBe(1);
  expect(again).toMatchObject({ partitions: 3, backfill_age_ms: 5_000, repeat_window: 32_768 });
  expect(again.epoch).toMatch(/^[a-z0-9]{6}$/);
  expect(await readAll(client, topicName(namespace, 'meta'), 60_000)).toHaveLength(1);
});

test('a backfill age beyond the bounds of the views is rejected before anything is created', async () => {
  const { engines, namespace, client } = newNamespace();
  for (const backfill_age_ms of [BACKFILL_AGE_MAX_MS + 1, -1]) {
    const options = { ...engines, namespace, settings: { partitions: 3, backfill_age_ms } };
    await expect(provision(options)).rejects.toThrow(/^backfill_age_ms is .+ give 0 to 604800000/);
  }
  const topics = await withAdmin(client, (admin) => admin.listTopics());
  expect(topics).not.toContain(topicName(namespace, 'meta'));
});

test('every topic matches its specification, and its subject holds its schema', async () => {
  const { engines, namespace, client } = newNamespace();
  await provision({ ...engines, namespace, settings: { partitions: 3 } });
  for (const id of topicIds) {
    const spec: TopicSpec = TOPICS[id];
    const name = topicName(namespace, id);
    const partitions = spec.partitions === 'pills' ? 3 : spec.partitions;
    expect(await countPartitions(client, name), name).toBe(partitions);
    const { resources } = await withAdmin(client, (admin) =>
      admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name }] }),
    );
    const config = Object.fromEntries(
      resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]),
    );
    expect(config, name).toMatchObject({
      'cleanup.policy': spec.compacted ? 'compact' : 'delete',
      'retention.ms': String(spec.retentionMs),
      ...spec.config,
    });
    const subject = encodeURIComponent(subjectName(namespace, id));
    const get = async (path: string) =>
      (await request(`${engines.registryUrl}${path}`)).body.json();
    const version = (await get(`/subjects/${subject}/versions/latest`)) as { schema: string };
    expect(JSON.parse(version.schema), name).toEqual(JSON.parse(schemaText(spec.value)));
    expect(await get(`/config/${subject}`), name).toEqual({
      compatibilityLevel: 'FULL_TRANSITIVE',
    });
  }
});

test('the registry rejects a schema that old readers cannot read', async () => {
  const { engines, namespace } = newNamespace();
  await provision({ ...engines, namespace, settings: { partitions: 1 } });
  const subject = encodeURIComponent(subjectName(namespace, 'pills'));
  const schema = JSON.parse(schemaText('pill'));
  schema.fields.push({ name: 'extra', type: 'string', doc: 'Incompatible: no default.' });
  const { statusCode, body } = await request(
    `${engines.registryUrl}/subjects/${subject}/versions`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      body: JSON.stringify({ schema: JSON.stringify(schema) }),
    },
  );
  await body.dump();
  expect(statusCode).toBe(409);
});

test('every column has a comment', async () => {
  const { engines, namespace } = newNamespace();
  await provision({ ...engines, namespace, settings: { partitions: 1 } });
  const database = databaseName(namespace);
  const clickhouse = openClickHouse({ url: engines.clickhouseUrl, database });
  const result = await clickhouse.query({
    query: `SELECT table, name, comment FROM system.columns WHERE database IN {databases:Array(String)}`,
    query_params: { databases: [database, customersDatabaseName(namespace)] },
    format: 'JSONEachRow',
  });
  const columns = await result.json<{ name: string; comment: string }>();
  await clickhouse.close();
  expect(columns.length).toBeGreaterThan(10);
  expect(columns.filter(({ comment }) => comment === '')).toEqual([]);
});
