import { choice, text, usedBy, whole, yesNo } from '../setting.ts';

const READERS = [
  'ingest',
  'api',
  'stream',
  'dedicated',
  'latest',
  'analytics',
  'webhooks',
  'destinations',
] as const;
/** Without an address, `rebuild` takes that of the local stack. */
const ON_LOG = [...READERS, 'demo', 'provision'] as const;
const ON_CLICKHOUSE = ['api', 'analytics', 'webhooks', 'provision'] as const;
const ON_POSTGRES = [
  'api',
  'stream',
  'dedicated',
  'webhooks',
  'destinations',
  'provision',
] as const;

/** Where the engines are, and how connections to them are secured. */
export const ENGINES = {
  ...usedBy([...ON_LOG, 'rebuild', 'start'], {
    KAFKA_BROKERS: text('Addresses of brokers, separated by commas, e.g. kafka-1:9092', {
      requiredBy: ON_LOG,
    }),
    KAFKA_TLS: yesNo('Connections to Kafka use TLS, and the certificates of brokers are verified'),
    KAFKA_CA_FILE: text(
      'PEM file of the authorities that sign the certificates of brokers; the public ones by default',
    ),
    KAFKA_CERTIFICATE_FILE: text('PEM file of the client certificate for Kafka'),
    KAFKA_KEY_FILE: text('PEM file of the private key of KAFKA_CERTIFICATE_FILE'),
    KAFKA_SASL_MECHANISM: choice(
      'How a process proves its name to Kafka',
      ['none', 'plain', 'scram-sha-256', 'scram-sha-512'],
      'none',
    ),
    KAFKA_USERNAME: text('Name of the process in Kafka, with a SASL mechanism'),
    KAFKA_PASSWORD: text('Password of KAFKA_USERNAME', { isSecret: true }),
    SCHEMA_REGISTRY_URL: text(
      'Address of the schema registry (Confluent API), http or https, with user and password if it ' +
        'asks for them, and ?sslrootcert=FILE',
      { isSecret: true, requiredBy: ON_LOG },
    ),
  }),
  ...usedBy([...ON_CLICKHOUSE, 'rebuild', 'start', 'stream', 'destinations'], {
    CLICKHOUSE_URL: text(
      'Address of ClickHouse with user and password, http or https, with ?sslrootcert=FILE',
      { isSecret: true, requiredBy: ON_CLICKHOUSE },
    ),
  }),
  ...usedBy([...ON_POSTGRES, 'start', 'admin'], {
    DATABASE_URL: text(
      'The postgres:// address with user and password; TLS by ?sslmode=verify-full&sslrootcert=FILE',
      { isSecret: true, requiredBy: ON_POSTGRES },
    ),
  }),
  ...usedBy([...ON_LOG, 'rebuild', 'start', 'admin'], {
    PILLOLE_NAMESPACE: text('Prefix of topics, subjects, groups and databases', { fallback: '' }),
  }),
  ...usedBy(['provision'], {
    PILLS_PARTITIONS: whole('Partitions of pills.v1, when its epoch is made', 12, {
      min: 1,
      max: 1_000,
    }),
  }),
  ...usedBy(['rebuild'], {
    REBUILD_SETTLE_MS: whole(
      'Time for which a rebuild waits for inserts that other processes have sent',
      35_000,
      { min: 0, max: 600_000 },
      'ms',
    ),
  }),
  ...usedBy(['clickhouse'], {
    CLICKHOUSE_PASSWORD: text('Password of the user default', {
      isSecret: true,
      requiredBy: ['clickhouse'],
    }),
    CLICKHOUSE_ANALYST_PASSWORD: text('Password of the user analyst', {
      isSecret: true,
      requiredBy: ['clickhouse'],
    }),
  }),
};
