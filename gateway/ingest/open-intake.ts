import type { KafkaClient } from '../../lib/kafka/client.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { openProducer, type Producer } from '../../lib/kafka/producer.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import { openLatestTable } from '../../lib/latest-table.ts';
import type { Log } from '../../lib/log.ts';
import { requireTopicSettings } from '../../lib/settings.ts';
import { createEncoder, type TopicSettings } from '../../schemas/avro.ts';
import { createSchemaClient, type SchemaClient } from '../../schemas/registry.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import type { IngestConfig } from './config.ts';
import { createIdentities, type Identities } from './identities.ts';
import { createIntake, type Intake } from './intake.ts';
import { INGEST_LIMITS, INGEST_PRODUCER_LIMITS } from './limits.ts';
import type { watchLog } from './log-health.ts';
import { createSkew } from './skew.ts';
import { createSymbols, type Symbols } from './symbols.ts';

export interface OpenIntake {
  readonly intake: Intake;
  readonly producer: Producer;
  readonly identities: Identities;
  readonly symbols: Symbols;
  /** What tells whether the log takes pills; `probe` asks it for something small. */
  readonly health: Parameters<typeof watchLog>[0];
}

/** How long the latest topic may take to be read once. */
const SYMBOLS_READ_MS = 60_000;

/**
 * Opens the way into the log: settings, schema, the symbols known so far, the producer.
 * @throws when the broker or the registry does not answer, or nothing is provisioned.
 */
export async function openIntake(config: IngestConfig, log: Log): Promise<OpenIntake> {
  const { namespace } = config;
  const client = createKafkaClient(config.kafkaBrokers, 'pillole-ingest', log);
  const schemas = createSchemaClient(config.registryUrl, namespace);
  const settings = await requireTopicSettings(client, schemas, namespace);
  const encode = createEncoder('pill', await schemas.register('pills'));
  const known = await readSymbols(client, schemas, namespace, settings, log);
  const { symbols_max: symbolsMax, partitions } = settings;
  const symbols = createSymbols({ symbolsMax, partitions, known });
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
    health: {
      isHealthy: producer.isHealthy,
      failedAt: intake.failedAt,
      probe: () => fetchOffsetBounds(client, topic),
    },
  };
}

/** Symbols of the latest view, read once. Those that come from elsewhere later are not known. */
async function readSymbols(
  client: KafkaClient,
  schemas: SchemaClient,
  namespace: string,
  { epoch }: TopicSettings,
  log: Log,
): Promise<{ readonly symbol: string; readonly partition: number }[]> {
  let fail: (error: Error) => void = () => undefined;
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
    groupPrefix: groupName(namespace, 'ingest'),
    onFatal: (error) => fail(error),
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
