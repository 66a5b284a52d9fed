import type { KafkaClient } from './client.ts';
import { consume, type LogRecord, type Steering } from './consume.ts';
import type { Pace } from './pace.ts';
import { fetchOffsetBounds, type OffsetBounds, requireInside } from './topics.ts';

/** Tells a step that works on a partition whether the partition is still ours. */
export interface Ownership {
  /** Aborted when the partition went to another member, or may have. */
  readonly signal: AbortSignal;
}

/** Where a newly owned partition is read from. */
export interface PartitionStart {
  /** First offset with effect; outside the log the member refuses to go on. */
  readonly start: number;
  /** First offset read, at most `start`: what lies between only warms the state up. */
  readonly from: number;
}

export interface GroupOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  readonly groupId: string;
  /** How many partitions are worked on side by side. */
  readonly concurrency: number;
  readonly pace: Pace;
  /**
   * Restores what a newly owned partition needs. Positions are kept with the data: the group's
   * commits are for the eyes of operators and never read.
   */
  onAssigned(
    partition: number,
    bounds: OffsetBounds,
    ownership: Ownership,
  ): Promise<PartitionStart>;
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

const EMPTY: OffsetBounds = { low: 0, high: 0 };

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
    if (!partitions.has(partition)) return;
    partitions.get(partition)?.abort.abort(new Error(`${topic}/${partition} was revoked`));
    partitions.delete(partition);
    options.onRevoked(partition);
  };

  const restoreOne = async (
    partition: number,
    owned: Owned,
    bounds: OffsetBounds,
    now: Steering,
  ) => {
    const { signal } = owned.abort;
    const { start, from } = await options.onAssigned(partition, bounds, { signal });
    await checkInside(client, topic, partition, start, bounds);
    if (signal.aborted) return;
    owned.next = from;
    now.resumeAt(partition, from);
  };

  const restore = async (fresh: ReadonlyMap<number, Owned>, now: Steering) => {
    // Whoever was revoked meanwhile fails by its abort, and that is no fault.
    const giveUp = (owned: Owned, error: Error) => {
      if (!owned.abort.signal.aborted) options.onFatal(error);
    };
    let bounds: Map<number, OffsetBounds>;
    try {
      bounds = await fetchOffsetBounds(client, topic);
    } catch (error) {
      for (const owned of fresh.values()) giveUp(owned, error as Error);
      return;
    }
    await Promise.all(
      [...fresh].map(([partition, owned]) =>
        restoreOne(partition, owned, bounds.get(partition) ?? EMPTY, now).catch((error) =>
          giveUp(owned, error),
        ),
      ),
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
      const fresh = new Map<number, Owned>();
      for (const partition of assigned) {
        if (partitions.has(partition)) continue;
        fresh.set(partition, { abort: new AbortController(), next: undefined });
      }
      for (const [partition, { next }] of partitions) now.resumeAt(partition, next!);
      if (fresh.size === 0) return;
      now.pause([...fresh.keys()]);
      for (const [partition, owned] of fresh) partitions.set(partition, owned);
      void restore(fresh, now);
    },
    onBeatRefused: revoke,
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
  requireInside(topic, partition, next, now);
}
