import { retryForever } from '../../lib/backoff.ts';
import { databaseName, openClickHouse } from '../../lib/clickhouse.ts';
import type { LogRecord } from '../../lib/kafka/consume.ts';
import { joinGroup, type Ownership } from '../../lib/kafka/group.ts';
import { BULK } from '../../lib/kafka/pace.ts';
import type { OffsetBounds } from '../../lib/kafka/topics.ts';
import {
  createPartitionReader,
  type PartitionReader,
  warmUpFrom,
} from '../../lib/partition-reader.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import type { ProcessorContext } from '../processor.ts';
import { type BufferedRow, rowOf } from './rows.ts';
import { createSink } from './sink.ts';
import { createPillStore } from './store.ts';

/** Time for the last insert when the process stops; below the deadline of lib/run. */
const CLOSE_DEADLINE_MS = 4_000;

/**
 * Stores every pill with effect once in ClickHouse. Its steps, in this order:
 * 1. restore: on assignment ask the table for its highest offset, which wins over the commit;
 * 2. warm up: read the repeat window before that, without effect;
 * 3. judge each record; what has no effect is the latest processor's to tell;
 * 4. buffer, then insert as one block: rows and position become true together;
 * 5. tell how far the table is, past records without effect too: readers wait for that;
 * 6. commit the offset, for the eyes of operators.
 */
export async function startAnalytics(context: ProcessorContext): Promise<void> {
  const { config, life, client, schemas, settings } = context;
  const { namespace } = config;
  const clickhouse = openClickHouse({
    url: config.clickhouseUrl,
    database: databaseName(namespace),
  });
  life.onStop('clickhouse', () => clickhouse.close());
  const store = createPillStore(clickhouse, settings.epoch);
  const partitions = new Map<number, PartitionReader>();
  /** Of the newest pill of each partition that is in the table, or on its way there. */
  const received = new Map<number, Micros>();

  const sink = createSink({
    store,
    log: life.log,
    onFatal: life.fail,
    onInserted(offsets) {
      void group.commit(new Map([...offsets].map(([p, offset]) => [p, offset + 1])));
    },
  });

  const ask = <T>(attempt: () => Promise<T>, signal: AbortSignal) =>
    retryForever(attempt, {
      firstMs: 200,
      maxMs: 3_000,
      signal,
      onError: (error, attempts) =>
        life.log.warn({ err: error, attempts }, 'ClickHouse does not answer; waiting'),
    });

  const restore = async (partition: number, { low }: OffsetBounds, { signal }: Ownership) => {
    const [position, symbols] = await ask(async () => {
      const positions = await store.positions();
      return [positions.get(partition), await store.symbols(partition)] as const;
    }, signal);
    const start = position === undefined ? low : position.offset + 1;
    partitions.set(
      partition,
      createPartitionReader({
        ...{ partition, start, settings, symbols, schemas },
        compareContent: false,
        log: life.log,
      }),
    );
    received.delete(partition);
    if (position !== undefined) {
      received.set(partition, position.receivedAt ?? 0);
      // Its last owner may have died between the rows and the telling.
      await sink.add([], signal, position);
    }
    life.log.info({ partition, start, symbols: symbols.size }, 'partition restored');
    return { start, from: warmUpFrom(start, low, settings) };
  };

  const onRecords = async (
    partition: number,
    records: readonly LogRecord[],
    { signal }: Ownership,
  ) => {
    const reader = partitions.get(partition);
    if (reader === undefined) return;
    const rows: BufferedRow[] = [];
    let last: number | undefined;
    for (const record of records) {
      const answer = reader.read(record, signal);
      const reading = answer instanceof Promise ? await answer.catch(() => undefined) : answer;
      if (reading === undefined) return; // revoked while the registry was silent
      last = record.offset;
      if (reading.kind !== 'effect') continue;
      rows.push(rowOf(settings.epoch, reading.pill));
      const { received_at } = reading.pill;
      if (received_at > (received.get(partition) ?? 0)) received.set(partition, received_at);
    }
    if (last === undefined) return;
    await sink.add(rows, signal, {
      ...{ partition, offset: last },
      receivedAt: received.get(partition),
    });
  };

  const group = joinGroup({
    client,
    topic: topicName(namespace, 'pills'),
    groupId: groupName(namespace, 'analytics'),
    concurrency: 1,
    pace: BULK,
    onAssigned: restore,
    onRecords,
    onRevoked(partition) {
      partitions.delete(partition);
      sink.drop(partition);
    },
    onFatal: life.fail,
  });
  life.onStop('sink', async () => {
    await sink.close(CLOSE_DEADLINE_MS);
    await group.close();
  });
  life.readyWhen(() => (group.isJoined() ? undefined : 'not in the consumer group'));
  life.readyWhen(() => (sink.isHealthy() ? undefined : 'ClickHouse does not take rows'));
}
