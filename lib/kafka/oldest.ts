import type { Micros } from '../../schemas/timestamp.ts';
import type { KafkaClient } from './client.ts';
import { openTail } from './tail.ts';
import { fetchOffsetBounds } from './topics.ts';

/** @returns append time of the oldest record that a topic holds; undefined when it is empty. */
export async function fetchOldest(client: KafkaClient, topic: string): Promise<Micros | undefined> {
  const bounds = await fetchOffsetBounds(client, topic);
  const filled = [...bounds.values()].filter(({ low, high }) => low < high).length;
  if (filled === 0) return undefined;
  const firsts = new Map<number, Micros>();
  let done: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const first = new Promise<void>((resolve, reject) => {
    done = resolve;
    fail = reject;
  });
  const tail = await openTail({
    client,
    topic,
    groupPrefix: `${topic}.oldest`,
    from: new Map(),
    onFatal: fail,
    onRecords(partition, [record]) {
      if (record !== undefined && !firsts.has(partition)) firsts.set(partition, record.appendedAt);
      if (firsts.size === filled) done();
    },
  });
  try {
    await first;
  } finally {
    await tail.close();
  }
  return Math.min(...firsts.values());
}
