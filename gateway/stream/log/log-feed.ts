import type { EffectivePill, SymbolState } from '../../../domain/order/judge.ts';
import { symbolStateOf } from '../../../domain/order/latest-fold.ts';
import { type LatestTable, openLatestTable } from '../../../domain/order/latest-table.ts';
import {
  createPartitionReader,
  type PartitionReader,
  type Reading,
  warmUpFrom,
} from '../../../domain/order/partition-reader.ts';
import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import type { LogRecord } from '../../../lib/kafka/log-record.ts';
import { QUICK } from '../../../lib/kafka/pace.ts';
import { openTail } from '../../../lib/kafka/tail.ts';
import { fetchOffsetBounds, requireInside } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { LIMITS } from '../limits.ts';
import { CHAOS_SYMBOL } from '../protocol/subscription.ts';
import { type Burst, createBurst } from './burst.ts';
import { createLatestPills, type LatestPills } from './latest-pills.ts';
import { createReplayBuffer, type ReplayBuffer } from './replay-buffer.ts';

/** The log as the stream reads it: pills with effect, in order, and the state made from them. */
export type LogFeed = Awaited<ReturnType<typeof openLogFeed>>;

interface LogFeedOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly settings: TopicSettings;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly replayBufferPillsMax: number;
  /**
   * Takes pills in the order of the log, after `latestPills` has them. Pills of `TEST:CHAOS` are
   * left out, because the stream generates its own. Must not wait.
   */
  onPills(pills: readonly EffectivePill[]): void;
  /** A live pill from before the start was read again. */
  onWarmed?(symbol: string, receivedAt: Micros): void;
  /** How long no further pills are wanted, in ms; called before each read. */
  pauseMs(): number;
  onRecord(outcome: 'effect' | 'repeat' | 'rejected'): void;
  onFatal(error: Error): void;
}

interface FeedState {
  readonly options: LogFeedOptions;
  readonly burst: Burst;
  readonly latestPills: LatestPills;
  readonly replayBuffer: ReplayBuffer;
  /** By partition. No record below `next` is judged again, even if the log delivers it twice. */
  readonly readers: Map<number, { readonly reader: PartitionReader; next: number }>;
}

/**
 * Opens the feed: folds the latest topic to its end, which gives the state of each symbol and the
 * position that state was read to, then reads the log from the repeat window before that position.
 * @throws PositionLostError when the log no longer holds that position.
 */
export async function openLogFeed(options: LogFeedOptions) {
  const { client, namespace, settings } = options;
  const state: FeedState = {
    options,
    burst: createBurst({ pillsMax: LIMITS.burstPillsMax, distanceMs: LIMITS.burstDistanceMs }),
    latestPills: createLatestPills(settings.epoch),
    replayBuffer: createReplayBuffer(options.replayBufferPillsMax),
    readers: new Map(),
  };
  const from = await restore(state);
  const tail = await openTail({
    client,
    topic: topicName(namespace, 'pills'),
    from,
    onRecords: (partition, records) => read(state, partition, records, 0),
    onFatal: options.onFatal,
    pace: { ...QUICK, pauseMs: () => Math.max(QUICK.pauseMs, options.pauseMs()) },
  });
  const { latestPills, replayBuffer } = state;
  return { ...tail, latestPills, replayBuffer };
}

/** Restores all partitions from the latest topic. @returns where to read the log from */
async function restore(state: FeedState): Promise<Map<number, number>> {
  const { client, schemas, namespace, settings, log, signal, onFatal } = state.options;
  const topic = topicName(namespace, 'pills');
  const from = new Map<number, number>();
  const { epoch } = settings;
  const table = await openLatestTable({
    client,
    schemas,
    namespace,
    epoch,
    log,
    onFatal,
  });
  try {
    await orAborted(table.caughtUp, signal);
    for (const [partition, bounds] of await fetchOffsetBounds(client, topic)) {
      const reader = restorePartition(partition, bounds.low, table, state);
      state.readers.set(partition, { reader, next: 0 });
      state.replayBuffer.begin(partition, reader.start);
      from.set(partition, warmUpFrom(reader.start, bounds.low, settings));
    }
    // Fetched again: the table and the log may have moved since the first answer.
    for (const [partition, bounds] of await fetchOffsetBounds(client, topic)) {
      requireInside(topic, partition, state.readers.get(partition)!.reader.start, bounds);
    }
  } finally {
    await table.close();
  }
  return from;
}

function restorePartition(
  partition: number,
  low: number,
  table: LatestTable,
  { options: { settings, schemas, log }, latestPills }: FeedState,
): PartitionReader {
  const symbols = new Map<string, SymbolState>();
  for (const { pill } of table.rowsOf(partition)) {
    symbols.set(pill.symbol, symbolStateOf(pill));
    if (pill.symbol === CHAOS_SYMBOL) continue;
    latestPills.seed({
      partition,
      offset: pill.offset,
      lastOffset: pill.last_offset,
      prevOffset: pill.prev_offset,
      backfill: pill.backfill,
      receivedAt: pill.received_at,
      pill,
    });
  }
  const processed = table.processed().get(partition);
  if (processed !== undefined) latestPills.advance(partition, processed);
  const start = processed === undefined ? low : processed + 1;
  return createPartitionReader({
    partition,
    start,
    settings,
    symbols,
    schemas,
    log,
    compareContent: false,
  });
}

/**
 * Judges records from an index on, and publishes those with effect, at most the pills of a burst at
 * a time: a fetch after a pause of this process holds MiBs, which would overflow the queues of
 * readers that keep up with the market.
 */
function read(
  state: FeedState,
  partition: number,
  records: readonly LogRecord[],
  first: number,
): void | Promise<void> {
  const { onPills, signal } = state.options;
  const { burst } = state;
  const entry = state.readers.get(partition)!;
  const pills: EffectivePill[] = [];
  const publish = () => {
    if (pills.length > 0) onPills(pills);
  };
  for (let at = first; at < records.length; at += 1) {
    const record = records[at]!;
    const { offset } = record;
    if (offset < entry.next) continue;
    entry.next = offset + 1;
    const reading = entry.reader.read(record, signal);
    if (reading instanceof Promise) {
      // The hub must have all pills of `latestPills` before other code can run.
      publish();
      return reading.then((loaded): void | Promise<void> => {
        const pill = apply(state, partition, offset, loaded);
        if (pill !== undefined) onPills([pill]);
        if (pill === undefined || burst.take()) return read(state, partition, records, at + 1);
        return burst.wait().then(() => read(state, partition, records, at + 1));
      });
    }
    const pill = apply(state, partition, offset, reading);
    if (pill === undefined) continue;
    pills.push(pill);
    if (burst.take() || at + 1 === records.length) continue;
    publish();
    return burst.wait().then(() => read(state, partition, records, at + 1));
  }
  publish();
}

/** Applies a judged record to the state. @returns the pill if it has effect. */
function apply(
  { options, latestPills, replayBuffer }: FeedState,
  partition: number,
  offset: number,
  reading: Reading,
): EffectivePill | undefined {
  if (reading.kind === 'warmed') {
    const { symbol, receivedAt } = reading.live ?? {};
    if (symbol !== undefined && latestPills.get(symbol) !== undefined) {
      options.onWarmed?.(symbol, receivedAt!);
    }
    return undefined;
  }
  latestPills.advance(partition, offset);
  options.onRecord(reading.kind);
  // Chaos pills from the log are judged like all others, so that all processes agree on the rest.
  // They are not streamed: the generated chaos pills have cursors of their own, which a snapshot or
  // a replay must not mix with those of the log.
  if (reading.kind !== 'effect' || reading.pill.symbol === CHAOS_SYMBOL) return undefined;
  latestPills.apply(reading.pill);
  replayBuffer.append(reading.pill);
  return reading.pill;
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
