import type { KafkaClient } from '../../../lib/kafka/client.ts';
import type { LogRecord } from '../../../lib/kafka/consume.ts';
import { STEADY } from '../../../lib/kafka/pace.ts';
import { openTail } from '../../../lib/kafka/tail.ts';
import { fetchOffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log.ts';
import {
  createPartitionReader,
  type PartitionReader,
  type Reading,
} from '../../../lib/partition-reader.ts';
import { createCadences, lateAfterMs } from '../../../lib/signal/cadence.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import { createPartitioner } from '../../../schemas/partition.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { groupName, topicName } from '../../../schemas/topics.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { createRecent, type Recent } from './recent.ts';
import { createSymbolWindow, createWindows, type SymbolWindow, type Windows } from './window.ts';

/** What a process remembers of the log: its newest pills, and what is usual of each symbol. */
export interface LogMemory {
  /** Resolves when all that was in the log at the start is remembered. */
  readonly caughtUp: Promise<void>;
  isConnected(): boolean;
  readonly recent: Recent;
  readonly windows: Windows;
  partitionOf(symbol: string): number;
  /** The symbol's window, made from what is remembered if it was forgotten. */
  windowOf(symbol: string): SymbolWindow;
  /** All up to and including these offsets was read. */
  offsets(): Offsets;
  /** How long a record waits already that was read here and is not in the view, in ms. */
  waitingMs(partition: number, processed: number, nowMs: number): number;
  /** When the last pill of any symbol but test ones came, and how long a silence is usual. */
  generator(): { readonly lastReceivedAt: Micros | undefined; readonly lateAfterMs: number };
  close(): Promise<void>;
}

export interface LogMemoryOptions {
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

interface PartitionMemory {
  readonly reader: PartitionReader;
  /** Offset of the next record: none is judged twice, even if the log hands it over again. */
  next: number;
  /** The first records that were read and not seen in the view, and when. */
  waiting: { readonly offset: number; readonly sinceMs: number } | undefined;
}

/**
 * Reads the last pills of the log and follows it. Each partition is read from the repeat window
 * before the first pill that is remembered, so that repeats are known exactly.
 */
export async function openLogMemory(options: LogMemoryOptions): Promise<LogMemory> {
  const { client, schemas, namespace, settings, log, signal, nowMs } = options;
  const topic = topicName(namespace, 'pills');
  const { recentPillsMax = VERIFY_LIMITS.recentPillsMax } = options;
  const recent = createRecent(recentPillsMax);
  const windows = createWindows();
  const generator = createCadences(1);
  const everySymbol = generator.slotOf('*');
  let lastReceivedAt: Micros | undefined;
  const partitions = new Map<number, PartitionMemory>();
  const begins = new Map<number, number>();
  const from = new Map<number, number>();
  const bounds = await fetchOffsetBounds(client, topic);
  const share = Math.floor(recentPillsMax / bounds.size);
  for (const [partition, { low, high }] of bounds) {
    const first = Math.max(low, high - share - settings.repeat_window);
    const start = first === low ? low : first + settings.repeat_window;
    const place = { partition, start, settings, symbols: new Map(), schemas, log };
    const reader = createPartitionReader({ ...place, compareContent: false });
    partitions.set(partition, { reader, next: first, waiting: undefined });
    recent.begin(partition, start);
    begins.set(partition, start);
    from.set(partition, first);
  }

  const hear = (symbol: string, receivedAt: Micros) => {
    if (isTestSymbol(symbol)) return;
    if (lastReceivedAt === undefined || receivedAt > lastReceivedAt) lastReceivedAt = receivedAt;
    generator.noteAt(everySymbol, lastReceivedAt);
  };
  const take = (partition: number, reading: Reading) => {
    if (reading.kind === 'warmed') {
      if (reading.live !== undefined) hear(reading.live.symbol, reading.live.receivedAt);
    } else if (reading.kind === 'repeat') recent.repeat(reading.pill);
    else if (reading.kind === 'effect') {
      const { pill } = reading;
      const { symbol, received_at: receivedAt } = pill;
      hear(symbol, receivedAt);
      if (!pill.backfill) {
        const live = { spread: pill.gross_spread_percent, receivedAt };
        windows.note(symbol, live, begins.get(partition)!);
      }
      recent.append(pill);
    }
  };
  const onRecords = async (partition: number, records: readonly LogRecord[]) => {
    const memory = partitions.get(partition);
    if (memory === undefined) return;
    for (const record of records) {
      if (record.offset < memory.next) continue;
      memory.next = record.offset + 1;
      const reading = memory.reader.read(record, signal);
      take(partition, reading instanceof Promise ? await reading : reading);
    }
    memory.waiting ??= { offset: memory.next - 1, sinceMs: nowMs() };
  };

  const tail = await openTail({
    ...{ client, topic, from, onRecords, onFatal: options.onFatal, pace: STEADY },
    groupPrefix: groupName(namespace, 'api.verify'),
  });
  const partitionOf = createPartitioner(settings.partitions);
  return {
    caughtUp: tail.caughtUp,
    isConnected: tail.isConnected,
    recent,
    windows,
    partitionOf,
    windowOf: (symbol) =>
      windows.ask(symbol, () => {
        const window = createSymbolWindow(recent.startOf(partitionOf(symbol)) ?? 0);
        for (const { pill } of recent.ofSymbol(symbol)) {
          const { gross_spread_percent: spread, received_at: receivedAt } = pill;
          if (!pill.backfill) window.push({ spread, receivedAt });
        }
        return window;
      }),
    offsets() {
      const read = [...partitions].filter(([, { next }]) => next > 0);
      return new Map(read.map(([partition, { next }]) => [partition, next - 1]));
    },
    waitingMs(partition, processed, at) {
      const memory = partitions.get(partition);
      if (memory?.waiting === undefined) return 0;
      if (processed < memory.waiting.offset) return at - memory.waiting.sinceMs;
      // Those after it have waited since it was there, at the longest.
      const last = memory.next - 1;
      memory.waiting = processed < last ? { offset: last, sinceMs: at } : undefined;
      return 0;
    },
    generator: () => ({
      lastReceivedAt,
      lateAfterMs: lateAfterMs(generator.medianMsAt(everySymbol)),
    }),
    close: tail.close,
  };
}
