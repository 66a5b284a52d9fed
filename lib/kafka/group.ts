import type { KafkaClient } from './client.ts';
import { consume, type LogRecord, type Pace, PositionLostError, type Steering } from './consume.ts';
import { fetchCommitted, fetchOffsetBounds, type OffsetBounds } from './topics.ts';

/** Tells a step that works on a partition whether the partition is still ours. */
export interface Ownership {
  /** Aborted when the partition went to another member, or may have. */
  readonly signal: AbortSignal;
}

/** What the log says of a partition when it is assigned. */
export interface PartitionPlace {
  /** The group's next offset; undefined without a commit. */
  readonly committed: number | undefined;
  readonly bounds: OffsetBounds;
}

export interface GroupOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  readonly groupId: string;
  /** How many partitions are worked on side by side. */
  readonly concurrency: number;
  readonly pace: Pace;
  /**
   * Restores what a newly owned partition needs. @returns the offset to read from.
   */
  onAssigned(partition: number, place: PartitionPlace, ownership: Ownership): Promise<number>;
  onRecords(
    partition: number,
    records: readonly LogRecord[],
    ownership: Ownership,
  ): Promise<void> | void;
  /** The partition is no longer ours; drop its state. */
  onRevoked(partition: number): void;
  onFatal(error: Error): void;
}

/** A member of a consumer group that shares a topic's partitions. */
export interface GroupMember {
  /** Commits next offsets; a commit that a rebalance refuses is no harm, positions are elsewhere. */
  commit(offsets: ReadonlyMap<number, number>): Promise<void>;
  /** Partitions that are restored and being read. */
  owned(): readonly number[];
  isJoined(): boolean;
  lag(): number;
  close(): Promise<void>;
}

interface Owned {
  readonly abort: AbortController;
  next: number | undefined;
}

/** Joins a group. State is kept over a rebalance in which a partition stayed with this member. */
export function joinGroup(options: GroupOptions): GroupMember {
  const { client, topic, groupId } = options;
  const partitions = new Map<number, Owned>();
  let steering: Steering | undefined;
  let member = '';

  const revoke = (partition: number) => {
    partitions.get(partition)?.abort.abort(new Error(`${topic}/${partition} was revoked`));
    partitions.delete(partition);
    options.onRevoked(partition);
  };

  const restore = async (fresh: readonly number[], now: Steering) => {
    const [committed, bounds] = await Promise.all([
      fetchCommitted(client, groupId, topic),
      fetchOffsetBounds(client, topic),
    ]);
    await Promise.all(
      fresh.map(async (partition) => {
        const owned = partitions.get(partition);
        if (owned === undefined || owned.abort.signal.aborted) return;
        const ownership = { signal: owned.abort.signal };
        const place = {
          committed: committed.get(partition),
          bounds: bounds.get(partition) ?? { low: 0, high: 0 },
        };
        const next = await options.onAssigned(partition, place, ownership);
        if (owned.abort.signal.aborted) return;
        await checkInside(client, topic, partition, next, place.bounds);
        owned.next = next;
        now.resumeAt(partition, next);
      }),
    );
  };

  const run = consume({
    client,
    topic,
    groupId: () => groupId,
    concurrency: options.concurrency,
    pace: options.pace,
    onFatal: options.onFatal,
    nextOffset: (partition) => partitions.get(partition)?.next,
    onJoin(assigned, memberId, now) {
      steering = now;
      // The coordinator forgets a member that missed a generation, and gives it another id: under
      // the same id nobody else can have owned a partition that was ours before and is now.
      const stayed = memberId === member;
      member = memberId;
      for (const partition of [...partitions.keys()]) {
        const keeps = stayed && assigned.includes(partition);
        if (!keeps || partitions.get(partition)!.next === undefined) revoke(partition);
      }
      const fresh = assigned.filter((partition) => !partitions.has(partition));
      for (const [partition, { next }] of partitions) now.resumeAt(partition, next!);
      if (fresh.length === 0) return;
      now.pause(fresh);
      for (const partition of fresh) {
        partitions.set(partition, { abort: new AbortController(), next: undefined });
      }
      restore(fresh, now).catch((error) => {
        const gone = fresh.some((partition) => !partitions.has(partition));
        if (!gone) options.onFatal(error);
      });
    },
    async onBatch({ partition, records, nextOffset }) {
      const owned = partitions.get(partition);
      if (owned === undefined) return;
      await options.onRecords(partition, records, { signal: owned.abort.signal });
      if (!owned.abort.signal.aborted) owned.next = nextOffset;
    },
  });

  return {
    async commit(offsets) {
      try {
        await steering?.commit(offsets);
      } catch (error) {
        client.log.debug({ err: error, topic }, 'a commit was refused');
      }
    },
    owned: () => [...partitions].filter(([, { next }]) => next !== undefined).map(([p]) => p),
    isJoined: run.isJoined,
    lag: run.lag,
    async close() {
      await run.close();
      for (const partition of [...partitions.keys()]) revoke(partition);
    },
  };
}

async function checkInside(
  client: KafkaClient,
  topic: string,
  partition: number,
  next: number,
  bounds: OffsetBounds,
): Promise<void> {
  if (next >= bounds.low && next <= bounds.high) return;
  // The log went on while the state was restored: only an end read now can prove a fault.
  const now = (await fetchOffsetBounds(client, topic)).get(partition) ?? bounds;
  if (next >= now.low && next <= now.high) return;
  const place = `${topic} partition ${partition}`;
  throw new PositionLostError(`${place}: offset ${next} is outside ${now.low} … ${now.high}.`);
}
