import type { EffectivePill } from '../../domain/order/judge.ts';
import {
  createPartitionReader,
  type PartitionReader,
  warmUpFrom,
} from '../../domain/order/partition-reader.ts';
import { timesOf } from '../../domain/order/time.ts';
import { databaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { joinGroup, type Ownership } from '../../lib/kafka/group.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import { BULK } from '../../lib/kafka/pace.ts';
import type { OffsetBounds } from '../../lib/kafka/topics.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { groupName, topicName } from '../../schemas/topic-catalogue.ts';
import type { ProcessorContext } from '../config.ts';
import { retryOfClickHouse } from '../retry-clickhouse.ts';
import { createPillStore } from './clickhouse-pills.ts';
import { rowOf } from './pill-rows.ts';
import { createPillSink } from './pill-sink.ts';
import { createRepeatStore, type RepeatRow } from './repeats.ts';

/** Time for the last insert when the process stops; below the deadline of lib/run. */
const CLOSE_DEADLINE_MS = 4_000;

/**
 * Stores every pill with effect once in ClickHouse. Its steps, in this order:
 * 1. restore: on assignment ask the table for its highest offset, which overrides the commit;
 * 2. warm up: read the repeat window before that, without effect;
 * 3. judge each record; the latest processor reports rejected ones;
 * 4. buffer, then insert repeats, and pills as one block: rows and position become visible together;
 * 5. publish how far the table is, past records without effect too: readers wait for that;
 * 6. commit the offset, only to show the lag.
 */
export async function startAnalytics(context: ProcessorContext): Promise<void> {
  const { config, life, client, schemas, settings } = context;
  const { namespace } = config;
  const database = databaseName(namespace);
  const clickhouse = openClickHouse({ url: config.clickhouseUrl, database });
  life.onStop('clickhouse', () => clickhouse.close());
  const store = createPillStore(clickhouse, settings.epoch);
  const partitions = new Map<number, PartitionReader>();
  /** Receive time of the newest pill of each partition that is in the table or being inserted. */
  const received = new Map<number, Micros>();

  const sink = createPillSink({
    store,
    storeRepeats: createRepeatStore(clickhouse, namespace, settings.epoch),
    log: life.log,
    onFatal: life.fail,
    onInserted(offsets) {
      void group.commit(new Map([...offsets].map(([p, offset]) => [p, offset + 1])));
    },
  });

  const retry = retryOfClickHouse(life.log);

  const restore = async (partition: number, { low }: OffsetBounds, { signal }: Ownership) => {
    const [position, symbols] = await retry(async () => {
      const positions = await store.positions();
      return [positions.get(partition), await store.symbols(partition)] as const;
    }, signal);
    const start = position === undefined ? low : position.offset + 1;
    const { log } = life;
    const reader = { partition, start, settings, symbols, schemas, log, compareContent: false };
    partitions.set(partition, createPartitionReader(reader));
    received.delete(partition);
    if (position !== undefined) {
      received.set(partition, position.receivedAt ?? 0);
      // The last owner may have died between writing the rows and their progress.
      await sink.add([], signal, position);
    }
    log.info({ partition, start, symbols: symbols.size }, 'partition restored');
    return { start, from: warmUpFrom(start, low, settings) };
  };

  type Records = readonly LogRecord[];
  const onRecords = async (partition: number, records: Records, { signal }: Ownership) => {
    const reader = partitions.get(partition);
    if (reader === undefined) return;
    const read = await readPills(partition, reader, records, signal);
    const last = records.at(-1);
    if (read === undefined || last === undefined) return;
    const { pills, repeats } = read;
    const receivedAt = pills.reduce<Micros | undefined>(
      (newest, { received_at: at }) => Math.max(at, newest ?? 0),
      received.get(partition),
    );
    if (receivedAt !== undefined) received.set(partition, receivedAt);
    const rows = pills.map((pill) => rowOf(settings.epoch, pill));
    await sink.add(rows, signal, { partition, offset: last.offset, receivedAt }, repeats);
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

/** @returns pills with effect, and repeats; undefined: revoked while the registry did not answer */
async function readPills(
  partition: number,
  reader: PartitionReader,
  records: readonly LogRecord[],
  signal: AbortSignal,
) {
  const pills: EffectivePill[] = [];
  const repeats: RepeatRow[] = [];
  for (const record of records) {
    const answer = reader.read(record, signal);
    const reading = answer instanceof Promise ? await answer.catch(() => undefined) : answer;
    if (reading === undefined) return undefined;
    if (reading.kind === 'effect') pills.push(reading.pill);
    else if (reading.kind === 'repeat') {
      const { received: receivedAt } = timesOf(reading.pill, record.appendedAt);
      const source = reading.pill.source ?? '';
      repeats.push({ partition, offset: record.offset, source, receivedAt });
    }
  }
  return { pills, repeats };
}
