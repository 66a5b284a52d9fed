// Writes one pill to Kafka as Avro, without the gateway and without code of pillole: it needs only
// kafkajs and its registry client. Prints the pill's cursor. After `npm run build`:
// node dist/generator/examples/direct-producer.js --brokers host:port --registry http://…/ccompat/v7
import { parseArgs } from 'node:util';
import { SchemaRegistry } from '@kafkajs/confluent-schema-registry';
import { Kafka, logLevel } from 'kafkajs';

const { values: flags } = parseArgs({
  options: {
    brokers: { type: 'string', default: process.env.KAFKA_BROKERS ?? '127.0.0.1:9092' },
    registry: { type: 'string', default: process.env.SCHEMA_REGISTRY_URL ?? '' },
    topic: { type: 'string', default: 'pills.v1' },
    id: { type: 'string', default: `direct-${Date.now()}` },
    symbol: { type: 'string', default: '7203.T' },
    spread: { type: 'string', default: '0.125' },
    state: { type: 'string', default: 'open' },
    confidence: { type: 'string', default: '90' },
  },
});

const registry = new SchemaRegistry({ host: flags.registry });
// The published schema (schemas/pill.avsc). A producer that registers its own text instead creates
// a new version of the contract by accident.
const schemaId = await registry.getLatestSchemaId(`${flags.topic}-value`);
const value = await registry.encode(schemaId, {
  id: flags.id,
  timestamp: Date.now() * 1000, // timestamp-micros
  symbol: flags.symbol,
  gross_spread_percent: Number(flags.spread),
  market_state: flags.state,
  confidence: Number(flags.confidence),
  source: 'direct-producer.ts', // received_at stays null: the broker's append time counts
});

const kafka = new Kafka({ brokers: flags.brokers.split(','), logLevel: logLevel.ERROR });
// The key decides the partition by murmur2, as in kafkajs's default partitioner.
const producer = kafka.producer({ allowAutoTopicCreation: false });
await producer.connect();
const [written] = await producer.send({
  topic: flags.topic,
  acks: -1,
  messages: [{ key: flags.symbol, value }],
});
await producer.disconnect();
console.log(`${written?.partition}-${written?.baseOffset}`);
