// Writes one pill to Kafka as Avro, without the gateway and without code of pillole: it needs only
// kafkajs and its registry client. Prints the pill's cursor. After `npm run build`:
// node dist/generator/examples/avro/direct-producer.js SYMBOL SPREAD [STACK_JSON [TIME_US]]
// The addresses come from stack.json, which `npm start` writes. To repeat a pill, give its
// time in µs since 1970, from which its id is made.
import { existsSync, readFileSync } from 'node:fs';
import { SchemaRegistry } from '@kafkajs/confluent-schema-registry';
import { Kafka, logLevel } from 'kafkajs';

function end(message: string): never {
  console.error(message);
  process.exit(1);
}

const [symbol, spread, stack = '.local/stack.json', time = `${Date.now()}000`, ...rest] =
  process.argv.slice(2);
if (symbol === undefined || !Number.isFinite(Number(spread ?? '-')) || rest.length > 0)
  end('Usage: node direct-producer.js SYMBOL SPREAD [STACK_JSON [TIME_US]]');
if (!existsSync(stack))
  end(`No running stack: ${stack} does not exist. Run "npm start", or name its stack.json.`);
const { kafka: brokers, registry: host } = JSON.parse(readFileSync(stack, 'utf8'));
const topic = process.env.PILLS_TOPIC ?? 'pills.v1';

const registry = new SchemaRegistry({ host });
// The published schema (schemas/pill.avsc). A producer that registers its own text instead creates
// a new version of the contract by accident.
const value = await registry.encode(await registry.getLatestSchemaId(`${topic}-value`), {
  id: `direct-${time}`,
  timestamp: Number(time), // timestamp-micros
  symbol,
  gross_spread_percent: Number(spread),
  market_state: 'open',
  confidence: 90,
  source: 'direct-producer.ts', // received_at stays null: the broker's append time counts
});

const kafka = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.ERROR });
// The key decides the partition by murmur2, as in kafkajs's default partitioner.
const producer = kafka.producer({ allowAutoTopicCreation: false });
try {
  await producer.connect();
  const messages = [{ key: symbol, value }];
  const [written] = await producer.send({ topic, acks: -1, messages });
  console.log(`${written?.partition}-${written?.baseOffset}`);
} catch (error) {
  end(`${error}. Perhaps the pill was stored: repeat it with the same time, ${time}`);
} finally {
  await producer.disconnect();
}
