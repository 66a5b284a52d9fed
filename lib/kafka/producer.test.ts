import { afterAll, beforeAll, expect, test } from 'vitest';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import type { Ack } from './log-record.ts';
import { openProducer, PRODUCER_LIMITS, ProduceError, type Producer } from './producer.ts';
import { readAll } from './read-all.ts';

/**
 * The deadline of a product may pass on a busy machine, and these tests are not about the deadline.
 */
const LIMITS = { ...PRODUCER_LIMITS, deadlineMs: 30_000 };
/** Likewise. */
const READ_MS = 60_000;

let namespace: Namespace;
let producer: Producer;
let topic: string;

beforeAll(async () => {
  namespace = await createNamespace();
  topic = topicName(namespace.name, 'pills');
  producer = await openProducer(namespace.client, LIMITS);
});
afterAll(() => producer?.close());

const recordOf = (text: string, partition: number) => ({
  topic,
  partition,
  key: text,
  value: Buffer.from(text),
});

test('N acknowledgements name N distinct positions, each holding the record that was sent', async () => {
  const sent = new Map<string, Ack>();
  const send = async (call: number) => {
    const texts = Array.from({ length: 1 + (call % 7) }, (_, i) => `${call}/${i}`);
    const acks = await producer.produce(texts.map((text, i) => recordOf(text, (call + i) % 3)));
    for (const [i, ack] of acks.entries()) sent.set(texts[i]!, ack);
  };
  for (let round = 0; round < 5; round += 1) {
    await Promise.all(Array.from({ length: 200 }, (_, i) => send(round * 200 + i)));
    // The next round uses a new connection.
    await producer.close();
    producer = await openProducer(namespace.client, LIMITS);
  }
  const positions = new Set([...sent.values()].map((ack) => `${ack.partition}-${ack.offset}`));
  expect(positions.size).toBe(sent.size);
  const records = await readAll(namespace.client, topic, READ_MS);
  expect(records.length).toBe(sent.size);
  const inLog = new Map(records.map((r) => [`${r.partition}-${r.offset}`, r]));
  for (const [text, ack] of sent) {
    const record = inLog.get(`${ack.partition}-${ack.offset}`)!;
    expect(record.value?.toString()).toBe(text);
    expect(ack.appendedAt).toBe(record.appendedAt);
  }
});

test('records above the queue bound are refused, and none of them is sent', async () => {
  const limits = { ...LIMITS, recordsMax: 10, batchIntervalMs: 0, batchBytesMax: 1_000 };
  const small = await openProducer(namespace.client, limits);
  try {
    const first = small.produce(Array.from({ length: 10 }, (_, i) => recordOf(`kept ${i}`, 0)));
    const refused = await small.produce([recordOf('refused', 0)]).catch((error) => error);
    expect(refused).toBeInstanceOf(ProduceError);
    expect(refused.code).toBe('overloaded');
    expect((await first).length).toBe(10);
    const texts = (await readAll(namespace.client, topic, READ_MS)).map(({ value }) =>
      value?.toString(),
    );
    expect(texts).not.toContain('refused');
  } finally {
    await small.close();
  }
});
