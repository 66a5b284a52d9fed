import { decodeWith } from '../../lib/decode.ts';
import type { KafkaClient } from '../../lib/kafka/client.ts';
import { type LogRecord, PositionLostError, QUICK } from '../../lib/kafka/consume.ts';
import { openTail, type Tail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import { type LatestTable, openLatestTable } from '../../lib/latest-table.ts';
import type { Log } from '../../lib/log.ts';
import {
  createPartitionJudge,
  type EffectivePill,
  type PartitionJudge,
  type SymbolState,
} from '../../lib/order/judge.ts';
import { orderOf } from '../../lib/order/latest-fold.ts';
import { createDecoder, type Decoded, type TopicSettings } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import { type Board, createBoard } from './board.ts';

/** The log as the stream sees it: pills with effect, in order, and the board they make. */
export interface Feed {
  readonly board: Board;
  /** Resolves when all that was in the log at the start is on the board. */
  readonly caughtUp: Promise<void>;
  isConnected(): boolean;
  close(): Promise<void>;
}

export interface FeedOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly settings: TopicSettings;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Pills in the order of the log; the board has them already. Must not wait. */
  onPills(pills: readonly EffectivePill[]): void;
  onRecord(outcome: 'effect' | 'repeat' | 'rejected'): void;
  onFatal(error: Error): void;
}

/** Reads one partition after the other; what each needs to decide. */
interface PartitionReader {
  readonly judge: PartitionJudge;
  /** Records before it only warm the repeat window. */
  readonly start: number;
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
  const topic = topicName(namespace, 'pills');
  const groupPrefix = groupName(namespace, 'stream');
  const readers = new Map<number, PartitionReader>();
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
    for (const [partition, { low, high }] of await fetchOffsetBounds(client, topic)) {
      const reader = restore(partition, low, table, settings, board);
      if (reader.start > high) {
        const place = `${topic} partition ${partition}`;
        throw new PositionLostError(
          `${place} was processed to ${reader.start}, but ends at ${high}.`,
        );
      }
      readers.set(partition, reader);
      from.set(partition, Math.max(low, reader.start - settings.repeat_window));
    }
  } finally {
    await table.close();
  }

  const decoder = createDecoder('pill', schemas.writerSchemas);
  const wait = { signal, log };

  /** Judges one record. @returns the pill when it has effect. */
  const take = (
    partition: number,
    record: LogRecord,
    decoded: Decoded<PillRecord>,
  ): EffectivePill | undefined => {
    const reader = readers.get(partition)!;
    const { offset, key, appendedAt } = record;
    if (offset < reader.next) return undefined;
    reader.next = offset + 1;
    if (offset < reader.start) {
      if (decoded.ok) reader.judge.warmUp(decoded.value, key, offset, appendedAt);
      return undefined;
    }
    board.advance(partition, offset);
    const verdict = decoded.ok
      ? reader.judge.judge(decoded.value, key, offset, appendedAt)
      : ({ kind: 'rejected' } as const);
    options.onRecord(verdict.kind);
    if (verdict.kind !== 'effect') return undefined;
    board.apply(verdict.pill);
    return verdict.pill;
  };

  const handle = (partition: number, records: readonly LogRecord[], first: number) => {
    const pills: EffectivePill[] = [];
    const publish = () => {
      if (pills.length > 0) options.onPills(pills);
    };
    for (let at = first; at < records.length; at += 1) {
      const record = records[at]!;
      const decoded = decodeWith(decoder, schemas, record.value, wait);
      if (decoded instanceof Promise) {
        // What is on the board must be in the hub whenever others run.
        publish();
        return decoded.then((loaded): void | Promise<void> => {
          const pill = take(partition, record, loaded);
          if (pill !== undefined) options.onPills([pill]);
          return handle(partition, records, at + 1);
        });
      }
      const pill = take(partition, record, decoded);
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
    pace: QUICK,
  });
  return {
    board,
    caughtUp: tail.caughtUp,
    isConnected: tail.isConnected,
    close: tail.close,
  };
}

function restore(
  partition: number,
  low: number,
  table: LatestTable,
  settings: TopicSettings,
  board: Board,
): PartitionReader {
  const symbols = new Map<string, SymbolState>();
  for (const { pill } of table.rowsOf(partition)) {
    symbols.set(pill.symbol, {
      order: orderOf(pill),
      offset: pill.offset,
      lastLive: pill.last_offset,
    });
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
  const judge = createPartitionJudge({ partition, settings, symbols, compareContent: false });
  const start = processed === undefined ? low : processed + 1;
  return { judge, start, next: 0 };
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
