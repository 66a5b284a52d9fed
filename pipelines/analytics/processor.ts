import { retryForever } from '../../lib/backoff.ts';
import { databaseName, openClickHouse } from '../../lib/clickhouse.ts';
import { decodeWith } from '../../lib/decode.ts';
import { BULK, type LogRecord, PositionLostError } from '../../lib/kafka/consume.ts';
import { joinGroup, type Ownership, type PartitionPlace } from '../../lib/kafka/group.ts';
import { createPartitionJudge, type PartitionJudge } from '../../lib/order/judge.ts';
import { createDecoder } from '../../schemas/avro.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import type { ProcessorContext } from '../processor.ts';
import { type BufferedRow, rowOf } from './rows.ts';
import { createSink } from './sink.ts';
import { createPillStore } from './store.ts';

/** Time for the last insert when the process stops; below the deadline of lib/run. */
const CLOSE_DEADLINE_MS = 4_000;

interface PartitionState {
  readonly judge: PartitionJudge;
  /** First offset that is not in the table; those before it only warm the repeat window. */
  readonly start: number;
}

/**
 * Stores every pill with effect once in ClickHouse. Its steps, in this order:
 * 1. restore: on assignment ask the table for its highest offset, which wins over the commit;
 * 2. warm up: read the repeat window before that, without effect;
 * 3. judge each record; what has no effect is the latest processor's to tell;
 * 4. buffer, then insert as one block: rows and position become true together;
 * 5. commit the offset, for the eyes of operators.
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
  const decoder = createDecoder('pill', schemas.writerSchemas);
  const partitions = new Map<number, PartitionState>();

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

  const restore = async (partition: number, place: PartitionPlace, { signal }: Ownership) => {
    const [position, symbols] = await ask(async () => {
      const positions = await store.positions();
      return [positions.get(partition), await store.symbols(partition)] as const;
    }, signal);
    const { low, high } = place.bounds;
    const start = position === undefined ? low : position + 1;
    if (start < low) {
      throw new PositionLostError(
        `Partition ${partition}: the table ends at ${position}, the log begins at ${low}; ` +
          'the pills between are in neither. See deploy/runbooks/position-lost.md.',
      );
    }
    const judge = createPartitionJudge({ partition, settings, symbols, compareContent: false });
    partitions.set(partition, { judge, start });
    life.log.info({ partition, start, high, symbols: symbols.size }, 'partition restored');
    return Math.max(low, start - settings.repeat_window);
  };

  const process = async (
    partition: number,
    records: readonly LogRecord[],
    { signal }: Ownership,
  ) => {
    const state = partitions.get(partition);
    if (state === undefined) return;
    const rows: BufferedRow[] = [];
    for (const { value, key, offset, appendedAt } of records) {
      const answer = decodeWith(decoder, schemas, value, { signal, log: life.log });
      const decoded = answer instanceof Promise ? await answer.catch(() => undefined) : answer;
      if (decoded === undefined) return; // revoked while the registry was silent
      if (!decoded.ok) continue;
      if (offset < state.start) {
        state.judge.warmUp(decoded.value, key, offset, appendedAt);
        continue;
      }
      const verdict = state.judge.judge(decoded.value, key, offset, appendedAt);
      if (verdict.kind === 'effect') rows.push(rowOf(settings.epoch, verdict.pill));
    }
    await sink.add(rows, signal);
  };

  const group = joinGroup({
    client,
    topic: topicName(namespace, 'pills'),
    groupId: groupName(namespace, 'analytics'),
    concurrency: 1,
    pace: BULK,
    onAssigned: restore,
    onRecords: process,
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
