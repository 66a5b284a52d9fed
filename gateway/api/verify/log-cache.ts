import { createCadences, lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import {
  createPartitionReader,
  type PartitionReader,
  type Reading,
} from '../../../domain/order/partition-reader.ts';
import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import type { LogRecord } from '../../../lib/kafka/log-record.ts';
import { STEADY } from '../../../lib/kafka/pace.ts';
import { openTail } from '../../../lib/kafka/tail.ts';
import { fetchOffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import { createPartitioner } from '../../../schemas/partition.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { createRecentPills, type RecentPills } from './recent-pills.ts';
import { createSymbolWindow, createSymbolWindows } from './symbol-window.ts';

interface LogCacheOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly settings: TopicSettings;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** See `VERIFY_LIMITS`. */
  readonly recentPillsMax?: number;
  /** Unix ms. */
  readonly nowMs: () => number;
  onFatal(error: Error): void;
}

export type LogCache = Awaited<ReturnType<typeof openLogCache>>;

/**
 * Keeps the newest pills of the log, and the usual figures of each symbol: reads the last pills and
 * follows the log. Each partition is read from one repeat window before the first cached pill, so
 * that repeats are recognised exactly.
 */
export async function openLogCache(options: LogCacheOptions) {
  const { client, namespace, settings, signal, nowMs } = options;
  const topic = topicName(namespace, 'pills');
  const recent = createRecentPills(options.recentPillsMax ?? VERIFY_LIMITS.recentPillsMax);
  const windows = createSymbolWindows();
  const generator = createGeneratorCadence();
  const partitions = await openPartitions(options, topic, recent);

  const apply = ({ start }: Partition, reading: Reading) => {
    if (reading.kind === 'warmed') {
      if (reading.live !== undefined) generator.add(reading.live.symbol, reading.live.receivedAt);
    } else if (reading.kind === 'repeat') recent.repeat(reading.pill);
    else if (reading.kind === 'effect') {
      const { pill } = reading;
      const { symbol, received_at: receivedAt } = pill;
      generator.add(symbol, receivedAt);
      if (!pill.backfill) {
        windows.add(symbol, { spread: pill.gross_spread_percent, receivedAt }, start);
      }
      recent.append(pill);
    }
  };
  const onRecords = async (id: number, records: readonly LogRecord[]) => {
    const partition = partitions.get(id);
    if (partition === undefined) return;
    for (const record of records) {
      if (record.offset < partition.next) continue;
      partition.next = record.offset + 1;
      const reading = partition.reader.read(record, signal);
      apply(partition, reading instanceof Promise ? await reading : reading);
    }
    partition.waiting ??= { offset: partition.next - 1, sinceMs: nowMs() };
  };

  const from = new Map([...partitions].map(([id, { next }]) => [id, next]));
  const tail = await openTail({
    client,
    topic,
    from,
    onRecords,
    onFatal: options.onFatal,
    pace: STEADY,
  });
  const partitionOf = createPartitioner(settings.partitions);
  return {
    /** Resolves once the log is read to the end that it had at the start. */
    caughtUp: tail.caughtUp,
    isConnected: tail.isConnected,
    recent,
    windows,
    partitionOf,
    /** The symbol's window, rebuilt from the recent pills if it was dropped. */
    windowOf: (symbol: string) =>
      windows.get(symbol, () => windowFrom(recent, symbol, partitionOf(symbol))),
    /** All records up to and including these offsets were read. */
    offsets() {
      const read = [...partitions].filter(([, { next }]) => next > 0);
      return new Map(read.map(([id, { next }]) => [id, next - 1]));
    },
    /** How long a record that was read here has been missing from the view, in ms. */
    waitingMs(id: number, processed: number, now: number) {
      const partition = partitions.get(id);
      return partition === undefined ? 0 : waitingMs(partition, processed, now);
    },
    /** Last receive time of any symbol except test symbols, and the longest usual silence. */
    generator: generator.state,
    close: tail.close,
  };
}

interface Partition {
  readonly reader: PartitionReader;
  /** First offset that the cache holds. */
  readonly start: number;
  /** Next offset to read: no record is judged twice, even if the log delivers it again. */
  next: number;
  /** The first record read here and not yet seen in the view, and since when. */
  waiting: { readonly offset: number; readonly sinceMs: number } | undefined;
}

async function openPartitions(
  { client, schemas, settings, log, recentPillsMax }: LogCacheOptions,
  topic: string,
  recent: RecentPills,
): Promise<ReadonlyMap<number, Partition>> {
  const bounds = await fetchOffsetBounds(client, topic);
  const share = Math.floor((recentPillsMax ?? VERIFY_LIMITS.recentPillsMax) / bounds.size);
  const partitions = new Map<number, Partition>();
  for (const [partition, { low, high }] of bounds) {
    const next = Math.max(low, high - share - settings.repeat_window);
    const start = next === low ? low : next + settings.repeat_window;
    const of = { settings, schemas, log, symbols: new Map(), compareContent: false };
    const reader = createPartitionReader({ partition, start, ...of });
    partitions.set(partition, { reader, start, next, waiting: undefined });
    recent.begin(partition, start);
  }
  return partitions;
}

/** When pills of any symbol arrive; test symbols do not count. */
function createGeneratorCadence() {
  const cadences = createCadences(1);
  const slot = cadences.slotOf('*');
  let lastReceivedAt: Micros | undefined;
  return {
    add(symbol: string, receivedAt: Micros) {
      if (isTestSymbol(symbol)) return;
      if (lastReceivedAt === undefined || receivedAt > lastReceivedAt) lastReceivedAt = receivedAt;
      cadences.noteAt(slot, lastReceivedAt);
    },
    state: () => ({ lastReceivedAt, lateAfterMs: lateAfterMs(cadences.medianMsAt(slot)) }),
  };
}

function windowFrom(recent: RecentPills, symbol: string, partition: number) {
  const window = createSymbolWindow(recent.starts.get(partition) ?? 0);
  for (const { pill } of recent.ofSymbol(symbol)) {
    const { gross_spread_percent: spread, received_at: receivedAt } = pill;
    if (!pill.backfill) window.push({ spread, receivedAt });
  }
  return window;
}

function waitingMs(partition: Partition, processed: number, nowMs: number): number {
  if (partition.waiting === undefined) return 0;
  if (processed < partition.waiting.offset) return nowMs - partition.waiting.sinceMs;
  // The view has this record; the wait of the records after it counts from now.
  const last = partition.next - 1;
  partition.waiting = processed < last ? { offset: last, sinceMs: nowMs } : undefined;
  return 0;
}
