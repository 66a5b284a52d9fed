import type { KafkaClient } from '../../../lib/kafka/client.ts';
import type { LogRecord } from '../../../lib/kafka/consume.ts';
import { QUICK } from '../../../lib/kafka/pace.ts';
import { openTail, type Tail } from '../../../lib/kafka/tail.ts';
import { fetchOffsetBounds, requireInside } from '../../../lib/kafka/topics.ts';
import { type LatestTable, openLatestTable } from '../../../lib/latest-table.ts';
import type { Log } from '../../../lib/log.ts';
import type { EffectivePill, SymbolState } from '../../../lib/order/judge.ts';
import { symbolStateOf } from '../../../lib/order/latest-fold.ts';
import {
  createPartitionReader,
  type PartitionReader,
  type Reading,
  warmUpFrom,
} from '../../../lib/partition-reader.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { groupName, topicName } from '../../../schemas/topics.ts';
import { CHAOS_SYMBOL } from '../chaos/chaos-schedule.ts';
import { type Backlog, createBacklog } from './backlog.ts';
import { type Board, createBoard } from './board.ts';

/** The log as the stream sees it: pills with effect, in order, and the board they make. */
export interface Feed {
  readonly board: Board;
  /** The last pills with effect, those on the board included. */
  readonly backlog: Backlog;
  readonly partitions: readonly number[];
  /** Resolves when all that was in the log at the start is on the board. */
  readonly caughtUp: Promise<void>;
  /** Whether pills can arrive now. */
  isConnected(): boolean;
  /** Leaves the log; takes up to 3 s when the broker does not answer. */
  close(): Promise<void>;
}

export interface FeedOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly settings: TopicSettings;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly backlogPillsMax: number;
  /**
   * Pills in the order of the log; the board has them already. None of `TEST:CHAOS`, which is
   * played and not read. Must not wait.
   */
  onPills(pills: readonly EffectivePill[]): void;
  /** A live pill from before the start was read again. */
  onWarmed?(symbol: string, receivedAt: Micros): void;
  /** How long nothing more is wanted after what came, in ms; asked each time. */
  pauseMs(): number;
  onRecord(outcome: 'effect' | 'repeat' | 'rejected'): void;
  onFatal(error: Error): void;
}

/** A partition while it is read. */
interface PartitionFeed {
  readonly reader: PartitionReader;
  /** Offset of the next record: none is judged twice, even if the log hands it over again. */
  next: number;
}

/**
 * Opens the feed, in this order: fold the latest topic to its end (what each symbol's state is,
 * and how far it had been read), then read the log from the repeat window before that place.
 * @throws PositionLostError when the log no longer holds that place.
 */
export async function openFeed(options: FeedOptions): Promise<Feed> {
  const { client, schemas, namespace, settings, log, signal } = options;
  const board = createBoard(settings.epoch);
  const backlog = createBacklog(options.backlogPillsMax);
  const topic = topicName(namespace, 'pills');
  const groupPrefix = groupName(namespace, 'stream');
  const feeds = new Map<number, PartitionFeed>();
  const from = new Map<number, number>();

  const table = await openLatestTable({
    client,
    schemas,
    namespace,
    epoch: settings.epoch,
    groupPrefix,
    log,
    onFatal: options.onFatal,
  });
  try {
    await orAborted(table.caughtUp, signal);
    for (const [partition, bounds] of await fetchOffsetBounds(client, topic)) {
      const reader = restore(partition, bounds.low, table, options, board);
      feeds.set(partition, { reader, next: 0 });
      backlog.begin(partition, reader.start);
      from.set(partition, warmUpFrom(reader.start, bounds.low, settings));
    }
    // Asked again: the table went on while the first answer was under way, and the log with it.
    for (const [partition, bounds] of await fetchOffsetBounds(client, topic)) {
      requireInside(topic, partition, feeds.get(partition)!.reader.start, bounds);
    }
  } finally {
    await table.close();
  }

  /** Puts what a record did on the board. @returns the pill when it has effect. */
  const take = (partition: number, offset: number, reading: Reading): EffectivePill | undefined => {
    if (reading.kind === 'warmed') {
      const { symbol, receivedAt } = reading.live ?? {};
      if (symbol !== undefined && board.get(symbol) !== undefined) {
        options.onWarmed?.(symbol, receivedAt!);
      }
      return undefined;
    }
    board.advance(partition, offset);
    options.onRecord(reading.kind);
    // Judged like any other, so that the rest is as all processes have it; but what is played under
    // the symbol has cursors of its own, which a snapshot or a replay must not mix with these.
    if (reading.kind !== 'effect' || reading.pill.symbol === CHAOS_SYMBOL) return undefined;
    board.apply(reading.pill);
    backlog.append(reading.pill);
    return reading.pill;
  };

  const handle = (partition: number, records: readonly LogRecord[], first: number) => {
    const feed = feeds.get(partition)!;
    const pills: EffectivePill[] = [];
    const publish = () => {
      if (pills.length > 0) options.onPills(pills);
    };
    for (let at = first; at < records.length; at += 1) {
      const record = records[at]!;
      const { offset } = record;
      if (offset < feed.next) continue;
      feed.next = offset + 1;
      const reading = feed.reader.read(record, signal);
      if (reading instanceof Promise) {
        // What is on the board must be in the hub whenever others run.
        publish();
        return reading.then((loaded): void | Promise<void> => {
          const pill = take(partition, offset, loaded);
          if (pill !== undefined) options.onPills([pill]);
          return handle(partition, records, at + 1);
        });
      }
      const pill = take(partition, offset, reading);
      if (pill !== undefined) pills.push(pill);
    }
    publish();
    return undefined;
  };

  const tail: Tail = await openTail({
    client,
    topic,
    groupPrefix,
    from,
    onRecords: (partition, records) => handle(partition, records, 0),
    onFatal: options.onFatal,
    pace: { ...QUICK, pauseMs: () => Math.max(QUICK.pauseMs, options.pauseMs()) },
  });
  return {
    board,
    backlog,
    partitions: tail.partitions,
    caughtUp: tail.caughtUp,
    isConnected: tail.isConnected,
    close: tail.close,
  };
}

function restore(
  partition: number,
  low: number,
  table: LatestTable,
  { settings, schemas, log }: FeedOptions,
  board: Board,
): PartitionReader {
  const symbols = new Map<string, SymbolState>();
  for (const { pill } of table.rowsOf(partition)) {
    symbols.set(pill.symbol, symbolStateOf(pill));
    if (pill.symbol === CHAOS_SYMBOL) continue;
    board.seed({
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
  if (processed !== undefined) board.advance(partition, processed);
  const start = processed === undefined ? low : processed + 1;
  const place = { partition, start, settings, symbols };
  return createPartitionReader({ ...place, schemas, log, compareContent: false });
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
