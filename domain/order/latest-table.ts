import { setTimeout as sleep } from 'node:timers/promises';
import { decodeWith } from '../../lib/kafka/decode.ts';
import type { KafkaClient } from '../../lib/kafka/kafka-client.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import type { Pace } from '../../lib/kafka/pace.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import type { Log } from '../../lib/log/log.ts';
import { createDecoder, type LatestPill } from '../../schemas/avro.ts';
import { isTestSymbol } from '../../schemas/pill.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { foldLatest, orderOf } from './latest-fold.ts';
import { isNewer } from './time.ts';

/** The newest pill of a symbol, and its partition. */
export interface LatestRow {
  readonly partition: number;
  readonly pill: LatestPill;
}

export type LatestTable = Awaited<ReturnType<typeof openLatestTable>>;

/**
 * Opens the compacted latest topic, folded in memory: one row per symbol (bound: symbols_max). The table
 * follows the topic until closed.
 */
export async function openLatestTable(options: {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly epoch: string;
  readonly log: Log;
  /** Called with every record of the topic before it is folded. */
  readonly onRecord?: (partition: number, offset: number, pill: LatestPill) => void;
  onFatal(error: Error): void;
  readonly pace?: Pace | undefined;
}) {
  const { client, schemas, epoch, log } = options;
  const decoder = createDecoder('latest-pill', schemas.writerSchemas);
  const topic = topicName(options.namespace, 'latest');
  const rows = new Map<string, LatestRow>();
  const processed = new Map<number, number>();
  const listeners = new Set<() => void>();
  const closing = new AbortController();
  let newest: LatestRow | undefined;

  const fold = (partition: number, offset: number, pill: LatestPill) => {
    if (pill.epoch !== epoch) return;
    options.onRecord?.(partition, offset, pill);
    const known = rows.get(pill.symbol);
    const folded = known === undefined ? pill : foldLatest(known.pill, pill);
    if (folded !== known?.pill) {
      const row = { partition, pill: folded };
      rows.set(pill.symbol, row);
      if (!isTestSymbol(pill.symbol) && isAfter(row, newest)) newest = row;
    }
    const until = processed.get(partition) ?? -1;
    if (pill.processed_offset > until) processed.set(partition, pill.processed_offset);
  };

  const onRecords = async (partition: number, records: readonly LogRecord[]) => {
    for (const { value, offset } of records) {
      const answer = decodeWith(decoder, schemas, value, { signal: closing.signal, log });
      const decoded = answer instanceof Promise ? await answer : answer;
      // Only the latest processor writes here; a record that does not decode is logged and skipped.
      if (decoded.ok) fold(partition, offset, decoded.value);
      else log.error({ partition, offset, code: decoded.code }, 'a latest record does not decode');
    }
    for (const listener of listeners) listener();
  };

  const tail = await openTail({
    client,
    topic,
    onRecords,
    onFatal: options.onFatal,
    pace: options.pace,
  });
  return {
    /** Resolves when all records that were in the topic at the start are folded. */
    caughtUp: tail.caughtUp,
    get: (symbol: string): LatestRow | undefined => rows.get(symbol),
    /** Newest pill of all symbols by order time; test symbols are left out. */
    newest: (): LatestRow | undefined => newest,
    /** Rows of one partition. */
    rowsOf: (partition: number) => [...rows.values()].filter((row) => row.partition === partition),
    rows: (): Iterable<LatestRow> => rows.values(),
    /** Number of symbols. */
    size: () => rows.size,
    /** By partition: all pills up to and including this offset are folded. */
    processed: (): ReadonlyMap<number, number> => processed,
    /** Registers a listener that is called after each batch of records. @returns its removal */
    onChange(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Resolves when all records that are now in a partition of the topic are folded. */
    async refresh(partition: number, signal: AbortSignal): Promise<void> {
      const bounds = await fetchOffsetBounds(client, topic);
      const end = bounds.get(partition)?.high ?? 0;
      while ((tail.nextOffset(partition) ?? 0) < end) {
        await sleep(5, undefined, { signal });
      }
    },
    lag: tail.lag,
    isConnected: tail.isConnected,
    async close(): Promise<void> {
      closing.abort(new Error('the latest table is closed'));
      await tail.close();
    },
  };
}

function isAfter(a: LatestRow, b: LatestRow | undefined): boolean {
  if (b === undefined) return true;
  const timeA = orderOf(a.pill);
  const timeB = orderOf(b.pill);
  if (timeA !== timeB || a.partition === b.partition) {
    return isNewer(timeA, a.pill.offset, timeB, b.pill.offset);
  }
  return a.partition > b.partition;
}
