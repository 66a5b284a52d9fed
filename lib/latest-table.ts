import { setTimeout as sleep } from 'node:timers/promises';
import { createDecoder, type LatestPill } from '../schemas/avro.ts';
import { isTestSymbol } from '../schemas/pill.ts';
import type { SchemaClient } from '../schemas/registry.ts';
import { topicName } from '../schemas/topics.ts';
import { decodeWith } from './decode.ts';
import type { KafkaClient } from './kafka/client.ts';
import type { LogRecord } from './kafka/consume.ts';
import type { Pace } from './kafka/pace.ts';
import { openTail } from './kafka/tail.ts';
import { fetchOffsetBounds } from './kafka/topics.ts';
import type { Log } from './log.ts';
import { foldLatest, orderOf } from './order/latest-fold.ts';
import { isNewer } from './order/time.ts';

/** The newest pill of a symbol and where it stands. */
export interface LatestRow {
  readonly partition: number;
  readonly pill: LatestPill;
}

/** The compacted latest topic, folded in memory: at most one row a symbol (bound: symbols_max). */
export interface LatestTable {
  /** Resolves when all that was in the topic at the start is folded. */
  readonly caughtUp: Promise<void>;
  get(symbol: string): LatestRow | undefined;
  /** Newest pill of all symbols by order time; test symbols are left out. */
  newest(): LatestRow | undefined;
  /** Rows of one partition. */
  rowsOf(partition: number): LatestRow[];
  rows(): Iterable<LatestRow>;
  /** How many symbols there are. */
  size(): number;
  /** By partition: all pills up to and including this offset are folded in. */
  processed(): ReadonlyMap<number, number>;
  /** Called after each batch of records that changed something. */
  onChange(listener: () => void): () => void;
  /** Resolves when all that is in a partition of the topic now is folded. */
  refresh(partition: number, signal: AbortSignal): Promise<void>;
  lag(): number;
  isConnected(): boolean;
  close(): Promise<void>;
}

export interface LatestTableOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly epoch: string;
  readonly groupPrefix: string;
  readonly log: Log;
  /** Sees every record as it stands in the topic, before it is folded. */
  readonly onRecord?: (partition: number, offset: number, pill: LatestPill) => void;
  onFatal(error: Error): void;
  /** `EAGER` unless said otherwise. */
  readonly pace?: Pace;
}

/** Opens the table; it follows the topic until closed. */
export async function openLatestTable(options: LatestTableOptions): Promise<LatestTable> {
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
      // Only our own processor writes here; a record that does not decode is told and left.
      if (decoded.ok) fold(partition, offset, decoded.value);
      else log.error({ partition, offset, code: decoded.code }, 'a latest record does not decode');
    }
    for (const listener of listeners) listener();
  };

  const tail = await openTail({
    client,
    topic,
    groupPrefix: options.groupPrefix,
    from: new Map(),
    onRecords,
    onFatal: options.onFatal,
    ...(options.pace === undefined ? {} : { pace: options.pace }),
  });
  return {
    caughtUp: tail.caughtUp,
    get: (symbol) => rows.get(symbol),
    newest: () => newest,
    rowsOf: (partition) => [...rows.values()].filter((row) => row.partition === partition),
    rows: () => rows.values(),
    size: () => rows.size,
    processed: () => processed,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async refresh(partition, signal) {
      const bounds = await fetchOffsetBounds(client, topic);
      const end = bounds.get(partition)?.high ?? 0;
      while ((tail.nextOffset(partition) ?? 0) < end) {
        await sleep(5, undefined, { signal });
      }
    },
    lag: tail.lag,
    isConnected: tail.isConnected,
    async close() {
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
