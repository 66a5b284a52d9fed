import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import { type KafkaClient, withAdmin } from './kafka-client.ts';

/** First offset still held (`low`), and the offset of the next record (`high`). */
export interface OffsetBounds {
  readonly low: number;
  readonly high: number;
}

/** The log no longer holds the record that this consumer must read next. */
export class PositionLostError extends Error {
  override readonly name = 'PositionLostError';
}

/**
 * @throws PositionLostError when the next offset to read is not between the first held offset and the
 *   end: the library would silently continue elsewhere.
 */
export function requireInside(
  topic: string,
  partition: number,
  offset: number,
  { low, high }: OffsetBounds,
): void {
  if (offset >= low && offset <= high) return;
  throw new PositionLostError(
    `${topic} partition ${partition}: offset ${offset} is outside ${low} … ${high}. ` +
      'See deploy/runbooks/position-lost.md.',
  );
}

/** Creates the topics that do not exist. @returns the names of the topics created by this call. */
export function createTopics(
  client: KafkaClient,
  requests: readonly {
    readonly name: string;
    readonly partitions: number;
    readonly config: Readonly<Record<string, string>>;
  }[],
): Promise<string[]> {
  return withAdmin(client, async (admin) => {
    const made: string[] = [];
    // One by one, because createTopics reports only whether all topics of a request were new.
    for (const { name, partitions, config } of requests) {
      const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
      const isNew = await admin.createTopics({
        waitForLeaders: false,
        timeout: 10_000,
        topics: [{ topic: name, numPartitions: partitions, replicationFactor: -1, configEntries }],
      });
      if (isNew) made.push(name);
    }
    for (const { name } of requests) await waitForLeaders(admin, name);
    return made;
  });
}

/** Deletes topics with all their records. */
export function deleteTopics(client: KafkaClient, names: readonly string[]): Promise<void> {
  return withAdmin(client, (admin) => admin.deleteTopics({ topics: [...names], timeout: 10_000 }));
}

/** Time within which every partition of a new topic must have a leader. */
const LEADERS_WAIT_MS = 60_000;

/**
 * A controller answers a creation before the brokers have the topic. The library's own wait ends in
 * UNKNOWN_TOPIC_OR_PARTITION at once when its first check comes too early (seen on a loaded
 * machine).
 */
async function waitForLeaders(admin: Admin, topic: string): Promise<void> {
  const deadline = performance.now() + LEADERS_WAIT_MS;
  for (;;) {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      const partitions = topics[0]?.partitions ?? [];
      if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) {
        // A named leader may not have created its log yet (seen), so its offsets are requested.
        await admin.fetchTopicOffsets(topic);
        return;
      }
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    if (performance.now() > deadline) throw new Error(`${topic} has no leaders.`);
    await sleep(50);
  }
}

/** Number of partitions of a topic. */
export function countPartitions(client: KafkaClient, topic: string): Promise<number> {
  return withAdmin(client, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    return topics[0]?.partitions.length ?? 0;
  });
}

/** Offset bounds of every partition of a topic. */
export function fetchOffsetBounds(
  client: KafkaClient,
  topic: string,
): Promise<Map<number, OffsetBounds>> {
  return withAdmin(client, (admin) => boundsOf(admin, topic));
}

/** For every partition, the first offset appended at `timeMs` or later, else the end offset. */
export function fetchOffsetsAt(
  client: KafkaClient,
  topic: string,
  timeMs: number,
): Promise<Map<number, number>> {
  return withAdmin(client, async (admin) => {
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, timeMs);
    return new Map(found.map(({ partition, offset }) => [partition, Number(offset)]));
  });
}

/** As `fetchOffsetBounds`, over an open connection. */
export async function boundsOf(admin: Admin, topic: string): Promise<Map<number, OffsetBounds>> {
  const offsets = await admin.fetchTopicOffsets(topic);
  return new Map(
    offsets.map(({ partition: p, low, high }) => [p, { low: Number(low), high: Number(high) }]),
  );
}
