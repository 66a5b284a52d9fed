import { retryForever } from '../../lib/backoff.ts';
import type { LogRecord } from '../../lib/kafka/consume.ts';
import { joinGroup, type Ownership } from '../../lib/kafka/group.ts';
import { BULK, STEADY } from '../../lib/kafka/pace.ts';
import { type OutRecord, openProducer } from '../../lib/kafka/producer.ts';
import type { OffsetBounds } from '../../lib/kafka/topics.ts';
import { openLatestTable } from '../../lib/latest-table.ts';
import { createCounter } from '../../lib/metrics.ts';
import { orderOf } from '../../lib/order/latest-fold.ts';
import { isNewer } from '../../lib/order/time.ts';
import { warmUpFrom } from '../../lib/partition-reader.ts';
import { createEncoder, type LatestPill } from '../../schemas/avro.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import type { ProcessorContext } from '../processor.ts';
import {
  type Changes,
  createLatestPartition,
  type LatestPartition,
  type Outcome,
} from './partition.ts';
import { originOf } from './rejected.ts';

/** Records judged before their changes are written: keeps one write below the broker's 1 MiB. */
const RUN_RECORDS_MAX = 1_000;
/** Bytes of rejected records in one write. */
const REJECTED_BYTES_MAX = 512 * 1024;
/** The commit only shows the lag, so it need not follow every batch. */
const COMMIT_INTERVAL_MS = 1_000;

const recordsTotal = createCounter({
  name: 'pillole_latest_records_total',
  help: 'Records of the pills topic, by what became of them.',
  labelNames: ['outcome'] as const,
});
const restoredTotal = createCounter({
  name: 'pillole_latest_rewritten_rows_total',
  help: 'Rows written again because an older one of another process stood after them.',
});

/**
 * Keeps the newest pill of each symbol in `pills.latest.v1`. Its steps, in this order:
 * 1. restore: on assignment, fold our own output to its end; go on after its processed offset;
 * 2. warm up: read the repeat window before that, without effect;
 * 3. judge each record (decode, check, repeat, late): lib/order;
 * 4. write rejected records, then the latest rows: the rows claim that all before is told;
 * 5. commit the offset, for the eyes of operators: no restart ever reads it;
 * 6. watch our own output: a row older than ours, written after ours by a paused predecessor, is
 *    answered by writing ours again (a commit does not fence; measured, see ARCHITECTURE).
 */
export async function startLatest(context: ProcessorContext): Promise<void> {
  const { config, life, client, schemas, settings } = context;
  const { namespace } = config;
  const topics = {
    latest: topicName(namespace, 'latest'),
    rejected: topicName(namespace, 'rejected'),
  };
  const retry = <T>(what: string, attempt: () => Promise<T>, signal = life.signal) =>
    retryForever(attempt, {
      firstMs: 100,
      maxMs: 2_000,
      signal,
      onError: (error, attempts) => life.log.warn({ err: error, attempts }, what),
    });

  const encodeLatest = createEncoder(
    'latest-pill',
    await retry('the registry does not answer', () => schemas.register('latest')),
  );
  const encodeRejected = createEncoder(
    'rejected-record',
    await retry('the registry does not answer', () => schemas.register('rejected')),
  );
  const producer = await retry('the log does not answer', () => openProducer(client));
  life.onStop('producer', producer.close);

  const partitions = new Map<number, LatestPartition>();
  /** Our last acknowledged write of a symbol: the row, and its offset in the latest topic. */
  const written = new Map<string, { readonly row: LatestPill; readonly offset: number }>();
  const done = new Map<number, number>();

  const latestRecord = (partition: number, row: LatestPill): OutRecord => ({
    topic: topics.latest,
    partition,
    key: row.symbol,
    value: encodeLatest(row),
  });

  const writeRows = async (partition: number, rows: readonly LatestPill[], signal: AbortSignal) => {
    if (rows.length === 0) return;
    const records = rows.map((row) => latestRecord(partition, row));
    const acks = await retry(
      'latest rows were not written',
      () => producer.produce(records),
      signal,
    );
    for (const [at, row] of rows.entries()) {
      written.set(row.symbol, { row, offset: acks[at]!.offset });
    }
  };

  const writeRejected = async ({ rejected }: Changes, signal: AbortSignal) => {
    const records = rejected.map((record) => ({
      topic: topics.rejected,
      partition: 0,
      key: originOf(record.epoch, record.partition, record.offset),
      value: encodeRejected(record),
    }));
    for (const part of splitByBytes(records, REJECTED_BYTES_MAX)) {
      await retry('rejected records were not written', () => producer.produce(part), signal);
    }
  };

  const answerZombie = (partition: number, offset: number, seen: LatestPill) => {
    // The row as it was written, not as it is: a later one may claim what is not written yet.
    const ours = written.get(seen.symbol);
    if (!partitions.has(partition) || ours === undefined) return;
    if (offset <= ours.offset || !isOlder(seen, ours.row)) return;
    restoredTotal.inc();
    writeRows(partition, [ours.row], life.signal).catch((error) => life.fail(error));
  };

  const table = await retry('the latest topic cannot be read', () =>
    openLatestTable({
      client,
      schemas,
      namespace,
      epoch: settings.epoch,
      groupPrefix: groupName(namespace, 'latest.own'),
      log: life.log,
      onRecord: answerZombie,
      pace: BULK,
      onFatal: life.fail,
    }),
  );
  life.onStop('latest table', table.close);
  await table.caughtUp;

  const restore = async (partition: number, bounds: OffsetBounds, { signal }: Ownership) => {
    await retry('the latest topic cannot be read', () => table.refresh(partition, signal), signal);
    const rows = table.rowsOf(partition).map(({ pill }) => pill);
    const processed = table.processed().get(partition);
    const start = processed === undefined ? bounds.low : processed + 1;
    partitions.set(
      partition,
      createLatestPartition({
        partition,
        start,
        settings,
        rows,
        schemas,
        log: life.log,
      }),
    );
    life.log.info({ partition, start, symbols: rows.length }, 'partition restored');
    return { start, from: warmUpFrom(start, bounds.low, settings) };
  };

  const onRecords = async (
    partition: number,
    records: readonly LogRecord[],
    { signal }: Ownership,
  ) => {
    const state = partitions.get(partition);
    if (state === undefined) return;
    try {
      for (let at = 0; at < records.length; at += RUN_RECORDS_MAX) {
        const run = records.slice(at, at + RUN_RECORDS_MAX);
        const changes = await state.apply(run, signal);
        await writeRejected(changes, signal);
        await writeRows(partition, changes.latest, signal);
        count(changes);
        const next = run.at(-1)!.offset + 1;
        if (next > state.start) done.set(partition, next);
      }
    } catch (error) {
      // Revoked in the middle: the next owner starts from what was written.
      if (!signal.aborted) throw error;
    }
  };

  const group = joinGroup({
    client,
    topic: topicName(namespace, 'pills'),
    groupId: groupName(namespace, 'latest'),
    concurrency: settings.partitions,
    pace: STEADY,
    onAssigned: restore,
    onRecords,
    onRevoked(partition) {
      partitions.delete(partition);
      done.delete(partition);
    },
    onFatal: life.fail,
  });
  const commit = async () => {
    if (done.size === 0) return;
    const offsets = new Map(done);
    done.clear();
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

function isOlder(seen: LatestPill, own: LatestPill): boolean {
  return (
    isNewer(orderOf(own), own.offset, orderOf(seen), seen.offset) ||
    (own.last_offset ?? -1) > (seen.last_offset ?? -1)
  );
}

function count({ outcomes }: Changes): void {
  for (const outcome of Object.keys(outcomes) as Outcome[]) {
    if (outcomes[outcome] > 0) recordsTotal.inc({ outcome }, outcomes[outcome]);
  }
}

function splitByBytes(records: readonly OutRecord[], bytesMax: number): OutRecord[][] {
  const parts: OutRecord[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const record of records) {
    if (bytes + record.value.length > bytesMax) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(record);
    bytes += record.value.length;
  }
  return parts;
}
