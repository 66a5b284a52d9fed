import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import { type KafkaClient, withAdmin } from './client.ts';

export interface TopicRequest {
  readonly name: string;
  readonly partitions: number;
  readonly config: Readonly<Record<string, string>>;
}

/** First offset still held, and the offset that the next record will get. */
export interface OffsetBounds {
  readonly low: number;
  readonly high: number;
}

/** Tells that the log no longer holds what this consumer must read next. */
export class PositionLostError extends Error {
  override readonly name = 'PositionLostError';
}

/**
 * @throws PositionLostError when an offset that must be read next is not between the first held and
 *   the end: the library would go on elsewhere without a word.
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

/** Creates the topics that do not exist. @returns the names of those this call has made. */
export function createTopics(
  client: KafkaClient,
  requests: readonly TopicRequest[],
): Promise<string[]> {
  return withAdmin(client, async (admin) => {
    const made: string[] = [];
    // One by one: createTopics tells only whether all of a request were new.
    for (const { name, partitions, config } of requests) {
      const isNew = await admin.createTopics({
        waitForLeaders: false,
        timeout: 10_000,
        topics: [
          {
            topic: name,
            numPartitions: partitions,
            replicationFactor: -1,
            configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
          },
        ],
      });
      if (isNew) made.push(name);
    }
    for (const { name } of requests) await waitForLeaders(admin, name);
    return made;
  });
}

/** Deletes topics with all they hold. */
export function deleteTopics(client: KafkaClient, names: readonly string[]): Promise<void> {
  return withAdmin(client, (admin) => admin.deleteTopics({ topics: [...names], timeout: 10_000 }));
}

/** How long a new topic may take until every partition of it has a leader. */
const LEADERS_WAIT_MS = 15_000;

/**
 * A controller answers a creation before the brokers know of it. The library's own wait ends in
 * UNKNOWN_TOPIC_OR_PARTITION at once when the first look comes too early (seen on a loaded machine).
 */
async function waitForLeaders(admin: Admin, topic: string): Promise<void> {
  const deadline = performance.now() + LEADERS_WAIT_MS;
  for (;;) {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      const partitions = topics[0]?.partitions ?? [];
      if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) {
        // A leader that is named may not have made its log yet (seen): ask it for its offsets.
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

/** Of every partition the first offset that was appended at a time or later, else the end. */
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

/** As `fetchOffsetBounds`, over a connection that is open already. */
export async function boundsOf(admin: Admin, topic: string): Promise<Map<number, OffsetBounds>> {
  const offsets = await admin.fetchTopicOffsets(topic);
  return new Map(
    offsets.map(({ partition, low, high }) => [
      partition,
      { low: Number(low), high: Number(high) },
    ]),
  );
}
