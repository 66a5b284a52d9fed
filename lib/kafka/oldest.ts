import { EventEmitter, once } from 'node:events';
import type { Micros } from '../../schemas/timestamp.ts';
import type { KafkaClient } from './kafka-client.ts';
import { openTail } from './tail.ts';
import { fetchOffsetBounds } from './topics.ts';

/** @returns the append time of the oldest record in a topic; undefined when the topic is empty. */
export async function fetchOldest(client: KafkaClient, topic: string): Promise<Micros | undefined> {
  const bounds = await fetchOffsetBounds(client, topic);
  const filled = [...bounds.values()].filter(({ low, high }) => low < high).length;
  if (filled === 0) return undefined;
  const firsts = new Map<number, Micros>();
  const found = new EventEmitter();
  const all = once(found, 'all');
  // An error after the end must not throw in the consumer that reports it.
  found.on('error', () => undefined);
  const tail = await openTail({
    client,
    topic,
    onFatal: (error) => found.emit('error', error),
    onRecords(partition, [record]) {
      if (record !== undefined && !firsts.has(partition)) firsts.set(partition, record.appendedAt);
      if (firsts.size === filled) found.emit('all');
    },
  });
  try {
    await all;
  } finally {
    await tail.close();
  }
  return Math.min(...firsts.values());
}
