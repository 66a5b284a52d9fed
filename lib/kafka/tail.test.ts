import { randomUUID } from 'node:crypto';
import { CompressionTypes, Kafka, logLevel } from 'kafkajs';
import { expect, onTestFinished, test } from 'vitest';
import { testEngine } from '../../testing/engine-addresses.ts';
import { waitFor } from '../../testing/wait.ts';
import { silentLog } from '../log/log.ts';
import { createKafkaClient, type KafkaClient, withAdmin } from './kafka-client.ts';
import type { LogRecord } from './log-record.ts';
import { openProducer, PRODUCER_LIMITS } from './producer.ts';
import { openTail } from './tail.ts';
import { createTopics, PositionLostError } from './topics.ts';

const brokers = () => testEngine('kafka').split(',');
/** The deadline of a product may pass on a busy machine. */
const LIMITS = { ...PRODUCER_LIMITS, deadlineMs: 60_000 };

async function newTopic(partitions: number, config: Record<string, string> = {}) {
  const client = createKafkaClient({ brokers: brokers() }, 'tail-test', silentLog);
  const topic = `tail.${randomUUID()}`;
  await createTopics(client, [{ name: topic, partitions, config }]);
  return { client, topic };
}

const openLibrary = () => new Kafka({ brokers: brokers(), logLevel: logLevel.NOTHING });

/** Another client of the log: the library. */
async function openOther() {
  const producer = openLibrary().producer();
  await producer.connect();
  onTestFinished(() => producer.disconnect());
  return producer;
}

type Read = LogRecord & { readonly partition: number };

async function readTopic(client: KafkaClient, topic: string, hold?: () => Promise<void>) {
  const records: Read[] = [];
  const faults: Error[] = [];
  const tail = await openTail({
    ...{ client, topic },
    onRecords(partition, batch) {
      records.push(...batch.map((record) => ({ ...record, partition })));
      return hold?.();
    },
    onFatal: (error) => faults.push(error),
  });
  onTestFinished(() => tail.close());
  return { tail, records, faults };
}

const positionOf = ({ partition, offset }: { partition: number; offset: number }) =>
  `${partition}-${offset}`;

test('what the library writes is read: headers, nulls, gzip, a record of almost 1 MiB', async () => {
  // With `producer`, the broker stores what the producer compressed.
  const { client, topic } = await newTopic(3, { 'compression.type': 'producer' });
  const other = await openOther();
  const { records, faults } = await readTopic(client, topic);
  const large = Buffer.alloc(1_048_000, 'x');
  const written = [
    { partition: 0, key: 'plain', value: 'a', headers: { one: ['1', '2'], none: '' } },
    { partition: 1, key: null, value: 'no key' },
    { partition: 2, key: 'tombstone', value: null },
    { partition: 0, key: 'ключ', value: Buffer.from([0, 255, 128]) },
  ];
  await other.send({ topic, messages: written });
  await other.send({ topic, messages: written, compression: CompressionTypes.GZIP });
  await other.send({ topic, messages: [{ partition: 1, key: 'large', value: large }] });
  await waitFor('all records', () => records.length === 9);
  const textOf = (value: Buffer | string | null) =>
    value === null ? null : Buffer.from(value).toString('latin1');
  for (const partition of [0, 1, 2]) {
    const own = written.filter((record) => record.partition === partition);
    const read = records.filter((record) => record.partition === partition);
    const expected = [...own, ...own, ...(partition === 1 ? [{ key: 'large', value: large }] : [])];
    expect(read.map(({ key, value }) => [key?.toString() ?? null, textOf(value)])).toEqual(
      expected.map(({ key, value }) => [key, textOf(value)]),
    );
    expect(read.map(({ offset }) => offset)).toEqual(expected.map((_, at) => at));
  }
  expect(faults).toEqual([]);
});

test('the library reads what we write, at the offsets and times of the acks', async () => {
  const { client, topic } = await newTopic(3, { 'message.timestamp.type': 'LogAppendTime' });
  const producer = await openProducer(client, LIMITS);
  onTestFinished(() => producer.close());
  const values = Array.from({ length: 300 }, (_, at) => Buffer.from(`${at} ${'ü'.repeat(at)}`));
  const acks = await producer.produce(
    values.map((value, at) => ({ topic, partition: at % 3, key: `schlüssel ${at}`, value })),
  );
  const read = new Map<string, { key: string; value: Buffer; timestamp: string }>();
  const consumer = openLibrary().consumer({ groupId: topic });
  onTestFinished(() => consumer.disconnect());
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ partition, message: { offset, key, value, timestamp } }) => {
      const position = positionOf({ partition, offset: Number(offset) });
      read.set(position, { key: String(key), value: value!, timestamp });
    },
  });
  await waitFor('all records', () => read.size === values.length);
  for (const [at, ack] of acks.entries()) {
    const { key, value, timestamp } = read.get(positionOf(ack))!;
    expect([key, Number(timestamp) * 1000]).toEqual([`schlüssel ${at}`, ack.appendedAt]);
    expect(value.equals(values[at]!)).toBe(true);
  }
});

test('records of many fetches arrive once, in order, while new ones are written', async () => {
  const { client, topic } = await newTopic(4);
  const other = await openOther();
  const write = (from: number, count: number) =>
    other.send({
      topic,
      messages: Array.from({ length: count }, (_, n) => ({
        partition: (from + n) % 4,
        value: Buffer.alloc(2_000, `${from + n} `),
      })),
    });
  await write(0, 400);
  // A handler with a promise holds the next fetch.
  let turn = 0;
  const hold = () => new Promise<void>((resolve) => setTimeout(resolve, (turn++ % 5) * 10));
  const { tail, records, faults } = await readTopic(client, topic, hold);
  for (let from = 400; from < 4_000; from += 400) await write(from, 400);
  await waitFor('all records', () => records.length >= 4_000);
  await tail.close();
  expect(new Set(records.map(positionOf)).size).toBe(4_000);
  for (const partition of [0, 1, 2, 3]) {
    const offsets = records.filter((one) => one.partition === partition).map((one) => one.offset);
    expect(offsets).toEqual(offsets.map((_, at) => at));
    expect(tail.nextOffset(partition)).toBe(1_000);
  }
  expect(faults).toEqual([]);
});

test('records that are deleted before they are read: the reader ends with the lost position', async () => {
  const { client, topic } = await newTopic(1);
  const other = await openOther();
  await other.send({ topic, messages: [{ value: 'read' }] });
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const { tail, records, faults } = await readTopic(client, topic, () => held);
  await waitFor('the first record', () => records.length === 1);
  await other.send({ topic, messages: [{ value: 'lost' }, { value: 'lost too' }] });
  await withAdmin(client, async (admin) => {
    await admin.fetchTopicOffsets(topic); // Loads the leaders, which the deletion needs.
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '3' }] });
  });
  letGo();
  await waitFor('the fault', () => faults.length > 0);
  expect(faults[0]).toBeInstanceOf(PositionLostError);
  expect(faults[0]!.message).toContain('the requested offset 1 is outside the log');
  expect([records.length, faults.length, tail.isConnected()]).toEqual([1, 1, false]);
});

test('an error of the handler ends the reader, without another record', async () => {
  const { client, topic } = await newTopic(1);
  const other = await openOther();
  const faults: Error[] = [];
  let calls = 0;
  const tail = await openTail({
    ...{ client, topic },
    onRecords() {
      calls += 1;
      throw new Error('no room');
    },
    onFatal: (error) => faults.push(error),
  });
  onTestFinished(() => tail.close());
  await other.send({ topic, messages: [{ value: 'one' }] });
  await waitFor('the fault', () => faults.length > 0);
  await other.send({ topic, messages: [{ value: 'two' }] });
  expect([calls, faults.map(({ message }) => message)]).toEqual([1, ['no room']]);
  expect(tail.nextOffset(0)).toBe(0);
});
