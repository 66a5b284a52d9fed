import { openLatestTable } from '../../domain/order/latest-table.ts';
import { createKafkaClient, type KafkaClient } from '../../lib/kafka/kafka-client.ts';
import { openProducer } from '../../lib/kafka/producer.ts';
import { requireTopicSettings } from '../../lib/kafka/topic-settings.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import type { Log } from '../../lib/log/log.ts';
import { createEncoder, type TopicSettings } from '../../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import type { IngestConfig } from './config.ts';
import { createIdentities } from './identities.ts';
import { createIntake } from './intake.ts';
import { INGEST_LIMITS, INGEST_PRODUCER_LIMITS } from './limits.ts';
import { createSkew } from './skew.ts';
import { createSymbols } from './symbols.ts';

/** Time limit for reading the latest topic. */
const SYMBOLS_READ_MS = 60_000;

/**
 * Connects to the log: settings, schema, known symbols, producer.
 * @throws when the broker or the registry does not answer, or nothing is provisioned
 */
export async function openIntake(config: IngestConfig, log: Log) {
  const { namespace } = config;
  const client = createKafkaClient(config.kafka, 'pillole-ingest', log);
  const schemas = createSchemaClient(config.registryUrl, namespace);
  const settings = await requireTopicSettings(client, schemas, namespace);
  const encode = createEncoder('pill', await schemas.register('pills'));
  const known = await readSymbols(client, schemas, namespace, settings, log);
  const symbols = createSymbols(settings.symbols_max, settings.partitions, known);
  const identities = createIdentities(INGEST_LIMITS.identitiesMax);
  const topic = topicName(namespace, 'pills');
  const producer = await openProducer(client, INGEST_PRODUCER_LIMITS);
  const skew = createSkew();
  const intake = createIntake({ settings, topic, producer, encode, identities, symbols, skew });
  log.info({ epoch: settings.epoch, symbols: known.length }, 'the log is open');
  return {
    intake,
    producer,
    identities,
    symbols,
    /** Inputs of `watchLog`; `probe` is a small request to the broker. */
    health: {
      isHealthy: producer.isHealthy,
      failedAt: intake.failedAt,
      probe: () => fetchOffsetBounds(client, topic),
    },
  };
}

/** Reads the symbols of the latest view once. Later symbols of other processes stay unknown. */
async function readSymbols(
  client: KafkaClient,
  schemas: SchemaClient,
  namespace: string,
  { epoch }: TopicSettings,
  log: Log,
): Promise<{ readonly symbol: string; readonly partition: number }[]> {
  let fail!: (error: Error) => void;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined);
  const table = await openLatestTable({
    client,
    schemas,
    namespace,
    epoch,
    log,
    onFatal: fail,
  });
  const timer = setTimeout(
    () => fail(new Error('The latest topic was not read in time.')),
    SYMBOLS_READ_MS,
  );
  try {
    await Promise.race([table.caughtUp, failed]);
    return [...table.rows()].map(({ partition, pill }) => ({ symbol: pill.symbol, partition }));
  } finally {
    clearTimeout(timer);
    await table.close();
  }
}
