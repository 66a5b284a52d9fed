import { openLatestTable } from '../../domain/order/latest-table.ts';
import { warmUpFrom } from '../../domain/order/partition-reader.ts';
import { joinGroup, type Ownership } from '../../lib/kafka/group.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import { BULK, STEADY } from '../../lib/kafka/pace.ts';
import { openProducer } from '../../lib/kafka/producer.ts';
import type { OffsetBounds } from '../../lib/kafka/topics.ts';
import { createCounter } from '../../lib/metrics/metrics.ts';
import { retryForever } from '../../lib/timing/backoff.ts';
import { groupName, topicName } from '../../schemas/topic-catalogue.ts';
import type { ProcessorContext } from '../config.ts';
import {
  type Changes,
  createLatestPartition,
  type LatestPartition,
  type Outcome,
} from './latest-partition.ts';
import { type LatestWriter, openLatestWriter, type Retry } from './latest-writer.ts';

/** Records judged before their changes are written: keeps one write below the broker's 1 MiB. */
const RUN_RECORDS_MAX = 1_000;
/** The commit only shows the lag, so it need not follow every batch. */
const COMMIT_INTERVAL_MS = 1_000;

const recordsTotal = createCounter({
  name: 'pillole_latest_records_total',
  help: 'Records of the pills topic, by outcome.',
  labelNames: ['outcome'] as const,
});

/**
 * Keeps the newest pill of each symbol in `pills.latest.v1`. Its steps, in this order:
 * 1. restore: on assignment, fold our own output to its end, continue after its processed offset;
 * 2. warm up: read the repeat window before that, without effect;
 * 3. judge each record (decode, check, repeat, late): domain/order;
 * 4. write rejected records, then the latest rows, which claim that everything before is written;
 * 5. commit the offset, only to show the lag: no restart ever reads it;
 * 6. watch our own output: a row older than ours, written after ours by a paused predecessor, makes
 *    us write ours again (a commit does not fence; measured, see ARCHITECTURE).
 */
export async function startLatest(context: ProcessorContext): Promise<void> {
  const { config, life, client, schemas, settings } = context;
  const { namespace } = config;
  const { log } = life;
  const retry: Retry = (what, attempt, signal) =>
    retryForever(attempt, {
      firstMs: 100,
      maxMs: 2_000,
      signal,
      onError: (error, attempts) => log.warn({ err: error, attempts }, what),
    });
  const connect = () => openProducer(client);
  const producer = await retry('the log does not answer', connect, life.signal);
  life.onStop('producer', producer.close);
  const writer = await openLatestWriter({ producer, schemas, retry }, namespace, life.signal);
  const partitions = new Map<number, LatestPartition>();
  const processed = new Map<number, number>();

  const openTable = () =>
    openLatestTable({
      client,
      schemas,
      namespace,
      epoch: settings.epoch,
      log,
      onRecord(partition, offset, seen) {
        if (!partitions.has(partition)) return;
        writer.rewriteIfOlder(partition, offset, seen, life.signal).catch(life.fail);
      },
      pace: BULK,
      onFatal: life.fail,
    });
  const table = await retry('the latest topic cannot be read', openTable, life.signal);
  life.onStop('latest table', table.close);
  await table.caughtUp;

  const restore = async (partition: number, { low }: OffsetBounds, { signal }: Ownership) => {
    const refresh = () => table.refresh(partition, signal);
    await retry('the latest topic cannot be read', refresh, signal);
    const rows = table.rowsOf(partition).map(({ pill }) => pill);
    const last = table.processed().get(partition);
    const start = last === undefined ? low : last + 1;
    const state = createLatestPartition({ partition, start, settings, rows, schemas, log });
    partitions.set(partition, state);
    log.info({ partition, start, symbols: rows.length }, 'partition restored');
    return { start, from: warmUpFrom(start, low, settings) };
  };

  const group = joinGroup({
    client,
    topic: topicName(namespace, 'pills'),
    groupId: groupName(namespace, 'latest'),
    concurrency: settings.partitions,
    pace: STEADY,
    onAssigned: restore,
    async onRecords(partition, records, { signal }) {
      const state = partitions.get(partition);
      if (state === undefined) return;
      await applyRecords(partition, state, records, signal, writer, processed);
    },
    onRevoked(partition) {
      partitions.delete(partition);
      processed.delete(partition);
    },
    onFatal: life.fail,
  });
  const commit = async () => {
    if (processed.size === 0) return;
    const offsets = new Map(processed);
    processed.clear();
    await group.commit(offsets);
  };
  const committer = setInterval(() => void commit(), COMMIT_INTERVAL_MS);
  life.onStop('group', async () => {
    clearInterval(committer);
    await commit();
    await group.close();
  });
  life.readyWhen(() => (group.isJoined() ? undefined : 'not in the consumer group'));
  life.readyWhen(() => (producer.isHealthy() ? undefined : 'the log does not acknowledge'));
}

/** @param processed gets the next offset of the partition after each run */
async function applyRecords(
  partition: number,
  state: LatestPartition,
  records: readonly LogRecord[],
  signal: AbortSignal,
  writer: LatestWriter,
  processed: Map<number, number>,
): Promise<void> {
  try {
    for (let at = 0; at < records.length; at += RUN_RECORDS_MAX) {
      const run = records.slice(at, at + RUN_RECORDS_MAX);
      const changes = await state.apply(run, signal);
      await writer.writeRejected(changes.rejected, signal);
      await writer.writeRows(partition, changes.latest, signal);
      count(changes);
      const next = run.at(-1)!.offset + 1;
      if (next > state.start) processed.set(partition, next);
    }
  } catch (error) {
    // Revoked in the middle: the next owner starts from the rows that were written.
    if (!signal.aborted) throw error;
  }
}

function count({ outcomes }: Changes): void {
  for (const outcome of Object.keys(outcomes) as Outcome[]) {
    if (outcomes[outcome] > 0) recordsTotal.inc({ outcome }, outcomes[outcome]);
  }
}
