import { setTimeout as sleep } from 'node:timers/promises';
import {
  createPartitionReader,
  type PartitionReader,
} from '../../domain/order/partition-reader.ts';
import type { ClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import type { KafkaClient } from '../../lib/kafka/kafka-client.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import { BULK } from '../../lib/kafka/pace.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds, type OffsetBounds } from '../../lib/kafka/topics.ts';
import type { Log } from '../../lib/log/log.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createPillStore, PILLS_TABLE, type PillStore } from './clickhouse-pills.ts';
import { type BufferedRow, rowOf } from './pill-rows.ts';
import { createPillSink } from './pill-sink.ts';

interface RebuildOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly clickhouse: ClickHouse;
  readonly settings: TopicSettings;
  readonly namespace: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly anew: boolean;
  /** Called at least once a second while the log is read. */
  onProgress(read: number, all: number): void;
  /** Called once, when readers have the new table. */
  onExchanged(): void;
  /**
   * How long, in ms, an insert that was in flight at the exchange of the tables may still arrive.
   */
  readonly settleMs: number;
}

/** The table that is being built; after the exchange, the old one. */
const NEXT = 'pills_next';
const CLOSE_DEADLINE_MS = 60_000;

/** Readers have the new table already, but the rebuild did not finish. */
export class UnsettledError extends Error {
  override readonly name = 'UnsettledError';
}

/**
 * Rebuilds the table of pills from the log, beside the one that readers see, while ingest and the
 * sink go on. Its steps, in this order:
 * 1. create an empty table, and copy rows that the log no longer has;
 * 2. read the log from its beginning to its end, judging as the sink does;
 * 3. when the new table has all rows of the old one, exchange the two, which is atomic;
 * 4. copy rows that the sink wrote to the old table meanwhile, until none can be in flight;
 * 5. drop the old table.
 * `pills_progress` stays as it is: between the exchange and the first copy, a few ms, rows of the
 * sink's last insert may be missing below it.
 * @param anew drops a table that an earlier rebuild has left; otherwise that table is a lock against
 *   a second rebuild
 * @returns the records of the log that were read, the rows with effect among them, and the rows kept
 *   from the old table: no longer in the log, or of another epoch
 * @throws UnsettledError after step 3; before it, readers keep the old table. After step 3 an abort
 *   has no effect.
 */
export async function rebuild(options: RebuildOptions) {
  const { clickhouse, settings, client, namespace } = options;
  const command = (query: string) => clickhouse.command({ query });
  if (options.anew) await command(`DROP TABLE IF EXISTS ${NEXT} SYNC`);
  await command(`CREATE TABLE ${NEXT} AS ${PILLS_TABLE}`);
  let isExchanged = false;
  try {
    const bounds = await fetchOffsetBounds(client, topicName(namespace, 'pills'));
    const kept = await copyRowsNotInLog(options, bounds);
    const { records, rows, until } = await readLog(options, bounds);
    await copyNewer(options, until, PILLS_TABLE, NEXT);
    options.signal.throwIfAborted();
    await command(`EXCHANGE TABLES ${PILLS_TABLE} AND ${NEXT}`);
    isExchanged = true;
    options.onExchanged();
    const deadline = performance.now() + options.settleMs;
    do {
      await copyNewer(options, until, NEXT, PILLS_TABLE);
      await sleep(500);
    } while (performance.now() < deadline);
    await command(`DROP TABLE ${NEXT} SYNC`);
    options.log.info({ records, rows, kept, epoch: settings.epoch }, 'the table is rebuilt');
    return { records, rows, kept };
  } catch (error) {
    if (isExchanged) throw new UnsettledError((error as Error).message, { cause: error });
    await command(`DROP TABLE IF EXISTS ${NEXT} SYNC`).catch(() => undefined);
    throw error;
  }
}

/** Copies rows of other epochs, and rows older than the log. @returns how many */
async function copyRowsNotInLog(
  { clickhouse, settings }: RebuildOptions,
  bounds: ReadonlyMap<number, OffsetBounds>,
): Promise<number> {
  const lost = [...bounds].map(([p, { low }]) => `partition = ${p} AND offset < ${low}`);
  const query_params = { epoch: settings.epoch };
  await clickhouse.command({
    query: `INSERT INTO ${NEXT} SELECT * FROM ${PILLS_TABLE} FINAL
            WHERE epoch != {epoch:String} OR ${lost.map((one) => `(${one})`).join(' OR ')}`,
    query_params,
  });
  const result = await clickhouse.query({
    query: `SELECT count() AS kept FROM ${NEXT}`,
    format: 'JSONEachRow',
  });
  const [row] = await result.json<{ kept: string }>();
  return Number(row!.kept);
}

/** Reads the log until the new table has all that the old one has. */
async function readLog(options: RebuildOptions, bounds: ReadonlyMap<number, OffsetBounds>) {
  const { client, clickhouse, settings, namespace, signal, log } = options;
  // Kept here instead of published: only the sink publishes progress to readers.
  const written = new Map<number, number>();
  const store: PillStore = {
    ...createPillStore(clickhouse, settings.epoch, NEXT),
    async publishProgress(progress) {
      for (const { partition, offset } of progress) written.set(partition, offset);
    },
  };
  let failed: Error | undefined;
  const fail = (error: Error) => {
    failed ??= error;
  };
  const sink = createPillSink({ store, log, onFatal: fail, onInserted: () => undefined });
  const readers = await openReaders(options, store, bounds);
  let records = 0;
  let rows = 0;
  const onRecords = async (partition: number, batch: readonly LogRecord[]) => {
    const reader = readers.get(partition)!;
    const found: BufferedRow[] = [];
    for (const record of batch) {
      const reading = await reader.read(record, signal);
      if (reading.kind !== 'effect') continue;
      found.push(rowOf(settings.epoch, reading.pill));
    }
    records += batch.length;
    rows += found.length;
    const last = batch.at(-1);
    if (last === undefined) return;
    // The store above ignores receive times.
    await sink.add(found, signal, { partition, offset: last.offset, receivedAt: undefined });
  };
  const tail = await openTail({
    client,
    topic: topicName(namespace, 'pills'),
    from: new Map([...bounds].map(([partition, { low }]) => [partition, low])),
    pace: BULK,
    onRecords,
    onFatal: fail,
  });
  const all = [...bounds.values()].reduce((sum, { low, high }) => sum + high - low, 0);
  let caughtUp = false;
  void tail.caughtUp.then(() => {
    caughtUp = true;
  });
  try {
    const live = createPillStore(clickhouse, settings.epoch);
    do {
      options.onProgress(records, Math.max(all, records));
      await sleep(1_000, undefined, { signal });
      if (failed !== undefined) throw failed;
    } while (!caughtUp || !hasAll(await store.positions(), await live.positions()));
  } finally {
    await tail.close();
    await sink.close(CLOSE_DEADLINE_MS);
  }
  options.onProgress(records, records);
  if (failed !== undefined) throw failed;
  for (const [partition, { low, high }] of bounds) {
    if (low < high && (written.get(partition) ?? -1) < (tail.nextOffset(partition) ?? 0) - 1) {
      throw new Error(`ClickHouse did not take the last rows of partition ${partition} in time.`);
    }
  }
  const until = new Map(tail.partitions.map((p) => [p, written.get(p) ?? -1]));
  return { records, rows, until };
}

async function openReaders(
  { settings, schemas, log }: RebuildOptions,
  store: PillStore,
  bounds: ReadonlyMap<number, OffsetBounds>,
) {
  const readers = new Map<number, PartitionReader>();
  for (const [partition, { low: start }] of bounds) {
    const symbols = await store.symbols(partition);
    const reader = { partition, start, settings, symbols, schemas, log, compareContent: false };
    readers.set(partition, createPartitionReader(reader));
  }
  return readers;
}

/** Copies rows past `until` that the sink wrote to one table and the other lacks. */
async function copyNewer(
  { clickhouse, settings }: RebuildOptions,
  until: ReadonlyMap<number, number>,
  from: string,
  to: string,
): Promise<void> {
  const newer = [...until]
    .map(([p, last]) => `(partition = ${p} AND offset > ${last})`)
    .join(' OR ');
  await clickhouse.command({
    query: `INSERT INTO ${to} SELECT * FROM ${from}
            WHERE epoch = {epoch:String} AND (${newer})
              AND (partition, offset) NOT IN
                (SELECT partition, offset FROM ${to} WHERE epoch = {epoch:String} AND (${newer}))`,
    query_params: { epoch: settings.epoch },
  });
}

type Positions = ReadonlyMap<number, { readonly offset: number }>;

function hasAll(next: Positions, live: Positions): boolean {
  return [...live].every(
    ([partition, { offset }]) => (next.get(partition)?.offset ?? -1) >= offset,
  );
}
