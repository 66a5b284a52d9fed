import { setTimeout as sleep } from 'node:timers/promises';
import { type ClickHouse, REQUEST_TIMEOUT_MS } from '../../lib/clickhouse.ts';
import type { KafkaClient } from '../../lib/kafka/client.ts';
import type { LogRecord } from '../../lib/kafka/consume.ts';
import { BULK } from '../../lib/kafka/pace.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds, type OffsetBounds } from '../../lib/kafka/topics.ts';
import type { Log } from '../../lib/log.ts';
import { createPartitionReader, type PartitionReader } from '../../lib/partition-reader.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import { type BufferedRow, rowOf } from './rows.ts';
import { createSink } from './sink.ts';
import { createPillStore, PILLS_TABLE, type PillStore } from './store.ts';

export interface RebuildOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly clickhouse: ClickHouse;
  readonly settings: TopicSettings;
  readonly namespace: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly anew: boolean;
  /** Told at least once a second while the log is read. */
  onProgress(read: number, all: number): void;
  /** Told once, when readers have the new table. */
  onExchanged(): void;
  /** How long an insert that was under way when the tables changed places may still arrive, in ms. */
  readonly settleMs: number;
}

/** What a rebuild did. */
export interface Rebuilt {
  /** Records of the log that were read. */
  readonly records: number;
  /** Rows with effect among them. */
  readonly rows: number;
  /** Rows kept from the old table: the log has them no more, or they are of another epoch. */
  readonly kept: number;
}

/** Being built; after the exchange, the old one. */
const NEXT = 'pills_next';
/** What is safe for `settleMs`: longer than the sink's own time-out of one request. */
export const SETTLE_MS = REQUEST_TIMEOUT_MS + 5_000;
const CLOSE_DEADLINE_MS = 60_000;

/** Readers have the new table already, but the end of the rebuild was not reached. */
export class UnsettledError extends Error {
  override readonly name = 'UnsettledError';
}

/**
 * Builds the table of pills anew from the log, beside the one that readers see, while ingest and the
 * sink go on. Its steps, in this order:
 * 1. make an empty table, and copy what the log has no more;
 * 2. read the log from its beginning to its end, judging as the sink does;
 * 3. when the new table holds all that the old one has, let them change places, which is atomic;
 * 4. copy what the sink wrote to the old table in that moment, until none can be on its way;
 * 5. drop the old table.
 * How far the table is, is told by `pills_progress`, which stays: between the exchange and the first
 * copy, some ms, rows of the sink's last insert may be missing below it.
 * @param anew a table that an earlier rebuild has left is dropped; without it its being there is a
 *   lock against a second rebuild
 * @throws UnsettledError after step 3; before it readers keep the old table. An abort has no effect
 *   after step 3.
 */
export async function rebuild(options: RebuildOptions): Promise<Rebuilt> {
  const { clickhouse, settings, client, namespace } = options;
  const command = (query: string) => clickhouse.command({ query });
  if (options.anew) await command(`DROP TABLE IF EXISTS ${NEXT} SYNC`);
  await command(`CREATE TABLE ${NEXT} AS ${PILLS_TABLE}`);
  let isExchanged = false;
  try {
    const bounds = await fetchOffsetBounds(client, topicName(namespace, 'pills'));
    const kept = await keepWhatTheLogLost(options, bounds);
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

/** Copies rows of other epochs, and those before the log's beginning. @returns how many */
async function keepWhatTheLogLost(
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
  const { client, schemas, clickhouse, settings, namespace, signal, log } = options;
  // What is told is what is written: kept here, since readers are told by the sink alone.
  const written = new Map<number, number>();
  const store: PillStore = {
    ...createPillStore(clickhouse, settings.epoch, NEXT),
    async tell(progress) {
      for (const { partition, offset } of progress) written.set(partition, offset);
    },
  };
  let failed: Error | undefined;
  const fail = (error: Error) => {
    failed ??= error;
  };
  const sink = createSink({ store, log, onFatal: fail, onInserted: () => undefined });
  const readers = new Map<number, PartitionReader>();
  for (const [partition, { low: start }] of bounds) {
    const symbols = await store.symbols(partition);
    readers.set(
      partition,
      createPartitionReader({
        ...{ partition, start, settings, symbols, schemas, log },
        compareContent: false,
      }),
    );
  }
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
    // Nobody is told of receive times here: see `tell` above.
    await sink.add(found, signal, { partition, offset: last.offset, receivedAt: undefined });
  };
  const tail = await openTail({
    client,
    topic: topicName(namespace, 'pills'),
    groupPrefix: groupName(namespace, 'rebuild'),
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
  const until: ReadonlyMap<number, number> = new Map(
    tail.partitions.map((p) => [p, written.get(p) ?? -1]),
  );
  return { records, rows, until };
}

/** Copies what the sink wrote to one table, past what was read here, and the other does not have. */
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
