// Kafka's own tools on the other side: any producer of the log may be a Java program.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { stackLayout } from '../../deploy/local/stack-layout.ts';
import { testEngine } from '../../testing/engine-addresses.ts';
import { QUICK_JAVA } from '../../testing/quick-java.ts';
import { waitFor } from '../../testing/wait.ts';
import { silentLog } from '../log/log.ts';
import { createKafkaClient } from './kafka-client.ts';
import { openProducer, PRODUCER_LIMITS } from './producer.ts';
import { openTail } from './tail.ts';
import { createTopics } from './topics.ts';

const brokers = () => testEngine('kafka');
const LIMITS = { ...PRODUCER_LIMITS, deadlineMs: 60_000 };
const LINES = ['one', 'ключ', 'x'.repeat(2_000)];
const RECORDS = 60;

/** The folder of the broker's jars, which hold the tools too. */
function jarsFolder(): string {
  const { engines } = stackLayout();
  const name = readdirSync(engines).find((one) => /^kafka-[\d.]+-[0-9a-f]{8}$/.test(one));
  return path.join(engines, name!);
}

function runTool(tool: string, args: readonly string[]): Promise<{ readonly stdout: string }> {
  const java = process.env.JAVA_HOME === undefined ? 'java' : `${process.env.JAVA_HOME}/bin/java`;
  const command = ['-cp', path.join(jarsFolder(), '*'), `org.apache.kafka.tools.${tool}`, ...args];
  const env = { ...process.env, JAVA_TOOL_OPTIONS: QUICK_JAVA };
  return promisify(execFile)(java, command, { env, maxBuffer: 64 * 1024 * 1024 });
}

async function newTopic() {
  const client = createKafkaClient({ brokers: brokers().split(',') }, 'java-test', silentLog);
  const topic = `java.${randomUUID()}`;
  // As the topics of the platform are: the broker decompresses what producers send.
  const config = { 'compression.type': 'uncompressed' };
  await createTopics(client, [{ name: topic, partitions: 1, config }]);
  return { client, topic };
}

async function writeByJava(topic: string, settings: readonly string[]): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-java-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'payloads');
  writeFileSync(file, LINES.join('\n'));
  await runTool('ProducerPerformance', [
    ...['--topic', topic, '--num-records', String(RECORDS), '--throughput', '-1'],
    ...['--payload-file', file, '--producer-props', `bootstrap.servers=${brokers()}`, ...settings],
  ]);
}

test('what the Java producer writes with every compression, and in transactions, is read', async () => {
  const { client, topic } = await newTopic();
  for (const codec of ['gzip', 'snappy', 'zstd']) {
    await writeByJava(topic, [`compression.type=${codec}`]);
  }
  await writeByJava(topic, ['compression.type=lz4', `transactional.id=${topic}`]);
  const values: string[] = [];
  const offsets: number[] = [];
  const faults: Error[] = [];
  const tail = await openTail({
    ...{ client, topic },
    onRecords(_partition, records) {
      values.push(...records.map(({ value }) => String(value)));
      offsets.push(...records.map(({ offset }) => offset));
    },
    onFatal: (error) => faults.push(error),
  });
  onTestFinished(() => tail.close());
  await tail.caughtUp;
  expect(values).toHaveLength(4 * RECORDS);
  expect(new Set(values)).toEqual(new Set(LINES));
  expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
  // The end of each transaction takes an offset, and is no record.
  expect(tail.nextOffset(0)).toBeGreaterThan(offsets.at(-1)! + 1);
  expect(faults).toEqual([]);
});

test('what our producer writes is read by the Java consumer, with its keys', async () => {
  const { client, topic } = await newTopic();
  const producer = await openProducer(client, LIMITS);
  onTestFinished(() => producer.close());
  const lines = Array.from({ length: RECORDS }, (_, at) => `${at} ${LINES[at % LINES.length]}`);
  await producer.produce(
    lines.map((line, at) => ({ topic, partition: 0, key: `k${at}`, value: Buffer.from(line) })),
  );
  let stdout = '';
  await waitFor('the consumer', async () => {
    ({ stdout } = await runTool('consumer.ConsoleConsumer', [
      ...['--bootstrap-server', brokers(), '--topic', topic, '--from-beginning'],
      ...['--max-messages', String(RECORDS), '--timeout-ms', '60000'],
      ...['--formatter-property', 'print.key=true'],
    ]));
    return true;
  });
  const expected = lines.map((line, at) => `k${at}\t${line}`);
  expect(stdout.split('\n').filter((line) => line.startsWith('k'))).toEqual(expected);
});
