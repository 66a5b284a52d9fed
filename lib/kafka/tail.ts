import { readPartitions } from './fetch-loop.ts';
import type { KafkaClient } from './kafka-client.ts';
import type { LogRecord } from './log-record.ts';
import { EAGER, type Pace } from './pace.ts';
import { fetchOffsetBounds, requireInside } from './topics.ts';

/**
 * Reads all partitions of a topic, without sharing them, until closed. The reader is in no group, so
 * a restart never waits for its predecessor's session to expire, and no commit can move its position.
 * @throws PositionLostError when a start offset lies outside the log.
 */
export async function openTail(options: {
  readonly client: KafkaClient;
  readonly topic: string;
  /** First offset wanted from each partition; other partitions are read from their beginning. */
  readonly from?: ReadonlyMap<number, number>;
  /** The next batch waits until this returns, or until its promise settles. */
  onRecords(partition: number, records: readonly LogRecord[]): void | Promise<void>;
  onFatal(error: Error): void;
  readonly pace?: Pace | undefined;
}) {
  const bounds = await fetchOffsetBounds(options.client, options.topic);
  const next = new Map<number, number>();
  for (const [partition, { low, high }] of bounds) {
    const wanted = options.from?.get(partition) ?? low;
    requireInside(options.topic, partition, wanted, { low, high });
    next.set(partition, wanted);
  }
  const waiting = new Set(
    [...bounds].filter(([p, { high }]) => next.get(p)! < high).map(([p]) => p),
  );
  let markCaughtUp: () => void = () => undefined;
  const caughtUp = new Promise<void>((resolve) => {
    markCaughtUp = resolve;
  });
  if (waiting.size === 0) markCaughtUp();

  const passed = (partition: number, nextOffset: number) => {
    next.set(partition, nextOffset);
    if (waiting.has(partition) && nextOffset >= bounds.get(partition)!.high) {
      waiting.delete(partition);
      if (waiting.size === 0) markCaughtUp();
    }
  };
  const run = readPartitions({
    client: options.client,
    topic: options.topic,
    partitions: [...bounds.keys()],
    pace: options.pace ?? EAGER,
    onFatal: options.onFatal,
    nextOffset: (partition) => next.get(partition)!,
    onBatch({ partition, records, nextOffset }) {
      const handled = options.onRecords(partition, records);
      if (handled instanceof Promise) return handled.then(() => passed(partition, nextOffset));
      passed(partition, nextOffset);
      return undefined;
    },
  });
  return {
    /** Resolves when all records that were in the topic at the start have been handed over. */
    caughtUp,
    nextOffset: (partition: number): number | undefined => next.get(partition),
    partitions: [...bounds.keys()].sort((a, b) => a - b),
    lag: run.lag,
    /** Whether the reader is connected, so that records can arrive. */
    isConnected: run.isConnected,
    close: run.close,
  };
}
