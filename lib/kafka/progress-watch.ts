import { noteDependency } from '../metrics/dependencies.ts';
import { createGauge } from '../metrics/metrics.ts';
import type { KafkaClient } from './kafka-client.ts';
import { openLogEnds } from './log-ends.ts';

/** A consumer may stop without an error (kafkajs #659): a stall this long ends the process. */
const STALL_MAX_MS = 15_000;
const WATCH_INTERVAL_MS = 3_000;
const ANSWER_MAX_MS = 5_000;

/**
 * The open readers. A topic may have several; a closed reader no longer counts. `lag` is undefined
 * until the log has answered.
 */
const readers = new Set<{ readonly topic: string; lag: number | undefined }>();

createGauge({
  name: 'pillole_consumer_lag_records',
  help: 'Records of a topic that this process has not read yet, summed over its readers.',
  labelNames: ['topic'] as const,
  collect() {
    this.reset();
    for (const { topic, lag } of readers) if (lag !== undefined) this.inc({ topic }, lag);
  },
});

/**
 * Compares a consumer's next offsets with the end of the log every 3 s. The consumer is stalled, and
 * `onFatal` is called, when records wait, none is read for 15 s and no handler is busy (`isBusy`).
 */
export function watchProgress(
  options: {
    readonly client: KafkaClient;
    readonly topic: string;
    /** Next offset wanted from a partition; undefined when the partition is not read. */
    nextOffset(partition: number): number | undefined;
    onFatal(error: Error): void;
  },
  isBusy: () => boolean,
) {
  const { client, topic } = options;
  const ends = openLogEnds(client, topic, ANSWER_MAX_MS);
  const reader = { topic, lag: undefined as number | undefined };
  readers.add(reader);
  let stalledSince: number | undefined;
  let lastSum = -1;
  let checking: Promise<void> = Promise.resolve();

  const check = async () => {
    const known = await ends.ask();
    noteDependency('kafka', known !== undefined);
    if (known === undefined) {
      // The log does not answer: the consumer itself reports and handles the outage.
      stalledSince = undefined;
      return;
    }
    let sum = 0;
    let behind = 0;
    for (const [partition, end] of known) {
      const next = options.nextOffset(partition);
      if (next === undefined) continue;
      sum += next;
      behind += Math.max(0, end - next);
    }
    reader.lag = behind;
    const stalled = behind > 0 && sum === lastSum && !isBusy();
    lastSum = sum;
    if (!stalled) stalledSince = undefined;
    else stalledSince ??= performance.now();
    if (stalledSince !== undefined && performance.now() - stalledSince > STALL_MAX_MS) {
      options.onFatal(new Error(`${topic}: no progress in ${STALL_MAX_MS} ms, ${behind} behind.`));
    }
  };
  const timer = setInterval(() => {
    checking = checking.then(check);
  }, WATCH_INTERVAL_MS);
  timer.unref();
  return {
    lag: () => reader.lag ?? 0,
    async close() {
      clearInterval(timer);
      readers.delete(reader);
      await checking;
      await ends.close();
    },
  };
}
