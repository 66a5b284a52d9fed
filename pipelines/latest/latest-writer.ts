import { orderOf } from '../../domain/order/latest-fold.ts';
import { isNewer } from '../../domain/order/time.ts';
import type { OutRecord } from '../../lib/kafka/log-record.ts';
import type { Producer } from '../../lib/kafka/producer.ts';
import { createCounter } from '../../lib/metrics/metrics.ts';
import { createEncoder, type LatestPill, type RejectedRecord } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { rejectedKey } from './rejected.ts';

/** Bytes of rejected records in one write. */
const REJECTED_BYTES_MAX = 512 * 1024;

const rewrittenTotal = createCounter({
  name: 'pillole_latest_rewritten_rows_total',
  help: 'Rows written again because another process had written an older one after them.',
});

/** Retries until it succeeds or the signal aborts. */
export type Retry = <T>(what: string, attempt: () => Promise<T>, signal: AbortSignal) => Promise<T>;

export type LatestWriter = Awaited<ReturnType<typeof openLatestWriter>>;

/** Writes to the two topics of the processor, whose schemas it registers. @throws when the signal aborts */
export async function openLatestWriter(
  deps: { readonly producer: Producer; readonly schemas: SchemaClient; readonly retry: Retry },
  namespace: string,
  signal: AbortSignal,
) {
  const { producer, schemas, retry } = deps;
  const register = (topic: 'latest' | 'rejected') =>
    retry('the registry does not answer', () => schemas.register(topic), signal);
  const encodeLatest = createEncoder('latest-pill', await register('latest'));
  const encodeRejected = createEncoder('rejected-record', await register('rejected'));
  const topic = topicName(namespace, 'latest');
  const rejectedTopic = topicName(namespace, 'rejected');
  /** Our last acknowledged write of each symbol: the row, and its offset in the latest topic. */
  const written = new Map<string, { readonly row: LatestPill; readonly offset: number }>();

  const writeRows = async (
    partition: number,
    rows: readonly LatestPill[],
    aborted: AbortSignal,
  ): Promise<void> => {
    if (rows.length === 0) return;
    const records = rows.map((row) => ({
      topic,
      partition,
      key: row.symbol,
      value: encodeLatest(row),
    }));
    const produce = () => producer.produce(records);
    const acks = await retry('latest rows were not written', produce, aborted);
    for (const [at, row] of rows.entries()) {
      written.set(row.symbol, { row, offset: acks[at]!.offset });
    }
  };

  return {
    writeRows,
    async writeRejected(rejected: readonly RejectedRecord[], aborted: AbortSignal): Promise<void> {
      const records = rejected.map((record) => ({
        topic: rejectedTopic,
        partition: 0,
        key: rejectedKey(record.epoch, record.partition, record.offset),
        value: encodeRejected(record),
      }));
      for (const part of splitByBytes(records, REJECTED_BYTES_MAX)) {
        await retry('rejected records were not written', () => producer.produce(part), aborted);
      }
    },
    /**
     * Writes our row again where a paused predecessor has written an older one after ours.
     * @param offset of the other row in the latest topic
     */
    async rewriteIfOlder(
      partition: number,
      offset: number,
      seen: LatestPill,
      aborted: AbortSignal,
    ): Promise<void> {
      // The row as written, not the current one, which may claim progress that is not written yet.
      const ours = written.get(seen.symbol);
      if (ours === undefined || offset <= ours.offset || !isOlder(seen, ours.row)) return;
      rewrittenTotal.inc();
      await writeRows(partition, [ours.row], aborted);
    },
  };
}

function isOlder(seen: LatestPill, own: LatestPill): boolean {
  return (
    isNewer(orderOf(own), own.offset, orderOf(seen), seen.offset) ||
    (own.last_offset ?? -1) > (seen.last_offset ?? -1)
  );
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
