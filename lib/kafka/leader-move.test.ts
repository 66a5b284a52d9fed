import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type KafkaCluster, startKafkaCluster } from '../../testing/kafka-cluster.ts';
import { waitFor } from '../../testing/wait.ts';
import { silentLog } from '../log/log.ts';
import { createKafkaClient, type KafkaClient, withAdmin } from './kafka-client.ts';
import type { Ack } from './log-record.ts';
import { openProducer, ProduceError } from './producer.ts';
import { openTail } from './tail.ts';
import { createTopics } from './topics.ts';

const PARTITIONS = [0, 1, 2];
/** Acknowledged records before and after the leader is lost. */
const RECORDS = 300;

let cluster: KafkaCluster;
let client: KafkaClient;

beforeAll(async () => {
  cluster = await startKafkaCluster();
  client = createKafkaClient({ brokers: cluster.brokers }, 'leader-test', silentLog);
});
afterAll(() => cluster?.stop());

async function newTopic(): Promise<string> {
  await waitFor('all brokers', () =>
    withAdmin(client, async (admin) => (await admin.describeCluster()).brokers.length === 3),
  );
  const name = `moving.${randomUUID()}`;
  await createTopics(client, [{ name, partitions: PARTITIONS.length, config: {} }]);
  return name;
}

async function leaderOf(topic: string, partition: number): Promise<number> {
  const { topics } = await withAdmin(client, (admin) =>
    admin.fetchTopicMetadata({ topics: [topic] }),
  );
  const of = topics[0]!.partitions.find(({ partitionId }) => partitionId === partition);
  return of!.leader;
}

interface Written extends Ack {
  readonly value: string;
}

/** Writes to all partitions without a pause; a record that is not acknowledged is not repeated. */
async function writeSteadily(topic: string) {
  const producer = await openProducer(client);
  const written: Written[] = [];
  let refused = 0;
  let isWriting = true;
  const write = async () => {
    for (let n = 0; isWriting; n += 1) {
      const values = PARTITIONS.map((partition) => `${partition}/${n}`);
      const records = values.map((value, partition) => ({
        ...{ topic, partition, key: String(partition), value: Buffer.from(value) },
      }));
      try {
        const acks = await producer.produce(records);
        written.push(...acks.map((ack, at) => ({ ...ack, value: values[at]! })));
      } catch (error) {
        if (!(error instanceof ProduceError)) throw error;
        refused += 1;
      }
    }
  };
  const writing = write();
  const stop = async () => {
    isWriting = false;
    await writing;
    await producer.close();
  };
  return { written, refused: () => refused, stop };
}

/** Reads a topic; `faults` are records out of order, and what ends the reader. */
async function readSteadily(topic: string) {
  const read = new Map<string, string>();
  const faults: string[] = [];
  const ends = new Map<number, number>();
  const tail = await openTail({
    ...{ client, topic },
    onRecords(partition, records) {
      for (const { offset, value } of records) {
        if (offset !== (ends.get(partition) ?? 0)) faults.push(`${partition}-${offset}`);
        ends.set(partition, offset + 1);
        read.set(`${partition}-${offset}`, value!.toString());
      }
    },
    onFatal: (error) => faults.push(error.message),
  });
  onTestFinished(() => tail.close());
  return { read, faults, tail };
}

// A stopped process leaves its connections open, and answers nothing; SIGKILL closes them.
test.for(['SIGSTOP', 'SIGKILL'] as const)(
  'a leader that moves (%s): all acknowledged records are read in order, each once',
  async (signal) => {
    const topic = await newTopic();
    const { read, faults, tail } = await readSteadily(topic);
    const writer = await writeSteadily(topic);
    await waitFor('records', () => writer.written.length >= RECORDS && read.size >= RECORDS);
    const lost = await leaderOf(topic, 1);
    cluster.signal(lost, signal);
    if (signal === 'SIGSTOP') onTestFinished(() => cluster.signal(lost, 'SIGCONT'));
    await waitFor('another leader', async () => (await leaderOf(topic, 1)) !== lost);
    const before = writer.written.length;
    await waitFor('records after it', () => writer.written.length >= before + RECORDS);
    await writer.stop();
    await waitFor('all records to be read', () =>
      writer.written.every(({ partition, offset }) => read.has(`${partition}-${offset}`)),
    );
    const different = writer.written.filter(
      ({ partition, offset, value }) => read.get(`${partition}-${offset}`) !== value,
    );
    expect(different).toEqual([]);
    expect(faults).toEqual([]);
    await waitFor('the reader to say that it is connected', () => tail.isConnected());
  },
);
