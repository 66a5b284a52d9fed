import { consume, type Steering } from './consume.ts';
import type { KafkaClient } from './kafka-client.ts';
import type { LogRecord } from './log-record.ts';
import type { Pace } from './pace.ts';
import { fetchOffsetBounds, type OffsetBounds, requireInside } from './topics.ts';

/** Whether a partition still belongs to this member. */
export interface Ownership {
  /** Aborted when the partition has moved, or may have moved, to another member. */
  readonly signal: AbortSignal;
}

interface GroupOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  readonly groupId: string;
  /** Number of partitions processed in parallel. */
  readonly concurrency: number;
  readonly pace: Pace;
  /**
   * Restores the state of a newly owned partition. Positions are kept with the data: the group's
   * commits only show the lag to operators and are never read.
   * @returns `start`, the first offset with effect (outside the log, the member fails), and `from`,
   *   the first offset to read, at most `start`: the records between only warm up the state
   */
  onAssigned(
    partition: number,
    bounds: OffsetBounds,
    ownership: Ownership,
  ): Promise<{ readonly start: number; readonly from: number }>;
  onRecords(
    partition: number,
    records: readonly LogRecord[],
    ownership: Ownership,
  ): Promise<void> | void;
  /** The partition no longer belongs to this member: its state must be dropped. */
  onRevoked(partition: number): void;
  onFatal(error: Error): void;
}

const EMPTY: OffsetBounds = { low: 0, high: 0 };

interface Owned {
  readonly abort: AbortController;
  next: number | undefined;
}

/**
 * Joins a consumer group, whose members share a topic's partitions. A partition that stays with this
 * member keeps its state over a rebalance.
 */
export function joinGroup(options: GroupOptions) {
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
      // The coordinator drops a member that missed a generation and gives it another id. Under the
      // same id, no other member can have owned a partition that this one had before and has now.
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
      void restorePartitions(options, fresh, now);
    },
    onHeartbeatRefused: revoke,
    async onBatch({ partition, records, nextOffset }) {
      const owned = partitions.get(partition);
      if (owned === undefined) return;
      await options.onRecords(partition, records, { signal: owned.abort.signal });
      if (!owned.abort.signal.aborted) owned.next = nextOffset;
    },
  });

  return {
    /** Commits next offsets. A commit refused in a rebalance is harmless: positions are elsewhere. */
    async commit(offsets: ReadonlyMap<number, number>): Promise<void> {
      await steering?.commit(offsets).catch((error: unknown) => {
        client.log.debug({ err: error, topic }, 'a commit was refused');
      });
    },
    /** Partitions that are restored and being read. */
    owned: (): readonly number[] =>
      [...partitions].filter(([, { next }]) => next !== undefined).map(([p]) => p),
    isJoined: run.isJoined,
    lag: run.lag,
    async close(): Promise<void> {
      await run.close();
      for (const partition of [...partitions.keys()]) revoke(partition);
    },
  };
}

/** Restores newly owned partitions, and starts reading each when it is restored. */
async function restorePartitions(
  options: GroupOptions,
  fresh: ReadonlyMap<number, Owned>,
  steering: Steering,
): Promise<void> {
  const { client, topic } = options;
  // The abort error of a partition that was revoked meanwhile is not a fault.
  const giveUp = ({ abort }: Owned, error: Error) => {
    if (!abort.signal.aborted) options.onFatal(error);
  };
  const restoreOne = async (partition: number, owned: Owned, bounds: OffsetBounds) => {
    const { signal } = owned.abort;
    const { start, from } = await options.onAssigned(partition, bounds, { signal });
    await checkInside(client, topic, partition, start, bounds);
    if (signal.aborted) return;
    owned.next = from;
    steering.resumeAt(partition, from);
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
      restoreOne(partition, owned, bounds.get(partition) ?? EMPTY).catch((error) =>
        giveUp(owned, error),
      ),
    ),
  );
}

async function checkInside(
  client: KafkaClient,
  topic: string,
  partition: number,
  next: number,
  bounds: OffsetBounds,
): Promise<void> {
  if (next >= bounds.low && next <= bounds.high) return;
  // The log has grown while the state was restored: only its current end can prove a fault.
  const now = (await fetchOffsetBounds(client, topic)).get(partition) ?? bounds;
  requireInside(topic, partition, next, now);
}
