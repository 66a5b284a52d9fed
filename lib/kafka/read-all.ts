import type { KafkaClient } from './kafka-client.ts';
import type { LogRecord } from './log-record.ts';
import { openTail } from './tail.ts';

/** Bound of `readAll`, which is meant for small topics. */
const RECORDS_MAX = 200_000;
/** Reading takes a fraction of a second; while a whole stack starts on two cores, many seconds. */
const READ_MS = 60_000;

/**
 * Reads a small topic from its beginning to its current end, partition by partition.
 * @throws when it holds more than 200,000 records, or the log does not answer in `timeoutMs`.
 */
export async function readAll(
  client: KafkaClient,
  topic: string,
  timeoutMs = READ_MS,
): Promise<(LogRecord & { readonly partition: number })[]> {
  const records: (LogRecord & { readonly partition: number })[] = [];
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const tail = await openTail({
    client,
    topic,
    onFatal: fail,
    onRecords(partition, batch) {
      if (records.length + batch.length > RECORDS_MAX) {
        fail(new Error(`${topic} holds more than ${RECORDS_MAX} records.`));
      } else {
        for (const record of batch) records.push({ ...record, partition });
      }
    },
  });
  const timer = setTimeout(() => fail(new Error(`${topic} was not read in time.`)), timeoutMs);
  try {
    await Promise.race([tail.caughtUp, failed]);
    return records;
  } finally {
    clearTimeout(timer);
    await tail.close();
  }
}
