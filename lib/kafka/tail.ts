import { randomUUID } from 'node:crypto';
import type { KafkaClient } from './client.ts';
import { consume, type LogRecord } from './consume.ts';
import { EAGER, type Pace } from './pace.ts';
import { fetchOffsetBounds, type OffsetBounds, requireInside } from './topics.ts';

export interface TailOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  /** Prefix of the throw-away group names this reader joins under. */
  readonly groupPrefix: string;
  /** First offset wanted of each partition; absent ones are read from their beginning. */
  readonly from: ReadonlyMap<number, number>;
  /** Must be quick or a promise: the next batch waits for it. */
  onRecords(partition: number, records: readonly LogRecord[]): void | Promise<void>;
  onFatal(error: Error): void;
  /** `EAGER` unless said otherwise. */
  readonly pace?: Pace;
}

/** Reads all partitions of a topic, alone and for ever. */
export interface Tail {
  /** Resolves when everything that was in the topic at the start has been handed over. */
  readonly caughtUp: Promise<void>;
  /** Next offset of a partition. */
  nextOffset(partition: number): number | undefined;
  readonly partitions: readonly number[];
  lag(): number;
  /** Whether records can arrive now. */
  isConnected(): boolean;
  close(): Promise<void>;
}

/**
 * Opens a reader of all partitions. Each connection joins a fresh group, so a restart never waits
 * for the session of its predecessor, and no commit can move it.
 * @throws PositionLostError when a start lies outside the log.
 */
export async function openTail(options: TailOptions): Promise<Tail> {
  const bounds = await fetchOffsetBounds(options.client, options.topic);
  const next = startOffsets(options, bounds);
  const waiting = new Set(
    [...bounds].filter(([p, { high }]) => next.get(p)! < high).map(([p]) => p),
  );
  let markCaughtUp: () => void = () => undefined;
  const caughtUp = new Promise<void>((resolve) => {
    markCaughtUp = resolve;
  });
  if (waiting.size === 0) markCaughtUp();

  const run = consume({
    client: options.client,
    topic: options.topic,
    groupId: () => `${options.groupPrefix}.${randomUUID()}`,
    concurrency: bounds.size,
    pace: options.pace ?? EAGER,
    onFatal: options.onFatal,
    nextOffset: (partition) => next.get(partition),
    onJoin(partitions, _memberId, steering) {
      for (const partition of partitions) steering.resumeAt(partition, next.get(partition) ?? 0);
    },
    async onBatch({ partition, records, nextOffset }) {
      // No await for a handler that is done: a turn of the event loop is latency.
      const handled = options.onRecords(partition, records);
      if (handled !== undefined) await handled;
      next.set(partition, nextOffset);
      if (waiting.has(partition) && nextOffset >= bounds.get(partition)!.high) {
        waiting.delete(partition);
        if (waiting.size === 0) markCaughtUp();
      }
    },
  });
  return {
    caughtUp,
    nextOffset: (partition) => next.get(partition),
    partitions: [...bounds.keys()].sort((a, b) => a - b),
    lag: run.lag,
    isConnected: run.isJoined,
    close: run.close,
  };
}

function startOffsets(
  { topic, from }: TailOptions,
  bounds: ReadonlyMap<number, OffsetBounds>,
): Map<number, number> {
  const next = new Map<number, number>();
  for (const [partition, { low, high }] of bounds) {
    const wanted = from.get(partition) ?? low;
    requireInside(topic, partition, wanted, { low, high });
    next.set(partition, wanted);
  }
  return next;
}
