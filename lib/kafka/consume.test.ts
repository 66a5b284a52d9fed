import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { testEngine } from '../../testing/engine-addresses.ts';
import { waitFor } from '../../testing/wait.ts';
import { silentLog } from '../log/log.ts';
import { metricsRegistry } from '../metrics/metrics.ts';
import { joinGroup } from './group.ts';
import { createKafkaClient, type KafkaClient } from './kafka-client.ts';
import { EAGER } from './pace.ts';
import { openTail } from './tail.ts';
import { createTopics, PositionLostError } from './topics.ts';

const brokers = () => testEngine('kafka').split(',');

async function newTopic(partitions = 1): Promise<{ client: KafkaClient; topic: string }> {
  const client = createKafkaClient({ brokers: brokers() }, 'consume-test', silentLog);
  const topic = `consume.${randomUUID()}`;
  await createTopics(client, [{ name: topic, partitions, config: {} }]);
  return { client, topic };
}

/** A direct producer with transactions. */
async function openOutsider(topic: string) {
  const kafka = new Kafka({ brokers: brokers(), logLevel: logLevel.NOTHING });
  const producer = kafka.producer({
    transactionalId: randomUUID(),
    maxInFlightRequests: 1,
    idempotent: true,
  });
  await producer.connect();
  const write = async (values: (string | Buffer)[], end: 'commit' | 'abort') => {
    const transaction = await producer.transaction();
    for (const value of values) {
      await transaction.send({ topic, messages: [{ partition: 0, value }] });
    }
    await transaction[end]();
  };
  return { write, close: () => producer.disconnect() };
}

test('skips aborted transactions: at the end, at the start, and larger than a fetch', async () => {
  const { client, topic } = await newTopic();
  const outsider = await openOutsider(topic);
  const large = Array.from({ length: 14 }, () => Buffer.alloc(100_000, 7));
  await outsider.write(['one'], 'commit');
  await outsider.write(large, 'abort');
  await outsider.write(['two'], 'commit');
  await outsider.write(['never'], 'abort');

  const values: string[] = [];
  const faults: Error[] = [];
  const tail = await openTail({
    ...{ client, topic, from: new Map() },
    onRecords: (_partition, records) => {
      for (const { value } of records) values.push(String(value));
    },
    onFatal: (error) => faults.push(error),
  });
  await tail.caughtUp;
  await outsider.write(['three'], 'commit');
  await waitFor('the record after the aborted transactions', () => values.includes('three'));
  await tail.close();
  await outsider.close();
  expect(values).toEqual(['one', 'two', 'three']);
  expect(faults).toEqual([]);
});

test.each([
  ['past the end', 5],
  ['before the beginning', -1],
])('a start %s is refused before any read', async (_, offset) => {
  const { client, topic } = await newTopic();
  const opened = openTail({
    ...{ client, topic, from: new Map([[0, offset]]) },
    onRecords: () => undefined,
    onFatal: () => undefined,
  });
  await expect(opened).rejects.toThrow(PositionLostError);
});

test('a rebalance during a restore is not a fault, and each partition has one reader', async () => {
  const { client, topic } = await newTopic(3);
  const groupId = topic;
  const faults: Error[] = [];
  const member = (restoreMs: number) =>
    joinGroup({
      ...{ client, topic, groupId, concurrency: 3, pace: EAGER },
      async onAssigned(_partition, { low }, { signal }) {
        await sleep(restoreMs, undefined, { signal });
        return { start: low, from: low };
      },
      onRecords: () => undefined,
      onRevoked: () => undefined,
      onFatal: (error) => faults.push(error),
    });
  const first = member(2_000);
  await waitFor('the first member to join', () => first.isJoined());
  const second = member(0);
  await waitFor('the partitions to be divided', () => {
    const owned = [...first.owned(), ...second.owned()].sort();
    return owned.join() === '0,1,2' && second.owned().length > 0;
  });
  await second.close();
  await waitFor('the first member to have all partitions again', () => first.owned().length === 3);
  await first.close();
  expect(faults).toEqual([]);
});

test('a consumer closed right after its start does not keep reading', async () => {
  const { client, topic } = await newTopic();
  const tail = await openTail({
    ...{ client, topic, from: new Map() },
    onRecords: () => undefined,
    onFatal: () => undefined,
  });
  await tail.close();
  expect(tail.isConnected()).toBe(false);
});

test('the lag of a process is the sum over its open readers; a closed reader no longer counts', async () => {
  const { client, topic } = await newTopic();
  const outsider = await openOutsider(topic);
  await outsider.write(['one', 'two'], 'commit');
  await outsider.close();
  const lag = async () => {
    const metric = metricsRegistry.getSingleMetric('pillole_consumer_lag_records')!;
    return (await metric.get()).values.find(({ labels }) => labels.topic === topic)?.value;
  };
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const openHeld = () =>
    openTail({
      ...{ client, topic, from: new Map() },
      onRecords: () => held,
      onFatal: () => undefined,
    });
  const first = await openHeld();
  // A reader that has read nothing yet has no lag.
  const one = await waitFor('the lag of one reader', async () => {
    const now = await lag();
    return now !== undefined && now >= 2 ? now : `a lag of ${now}`;
  });
  const second = await openHeld();
  await waitFor('the lag of both readers', async () => (await lag()) === 2 * one);
  letGo();
  await second.close();
  await waitFor('the lag of the remaining reader', async () => (await lag())! <= one);
  await first.close();
  expect(await lag()).toBeUndefined();
});
