import type { Batch, Consumer, Kafka } from 'kafkajs';
import type { Micros } from '../../schemas/timestamp.ts';
import { backoffMs } from '../backoff.ts';
import { type KafkaClient, openKafka } from './client.ts';
import { createPacer, type Pace } from './pace.ts';
import { watchProgress } from './progress-watch.ts';
import { PositionLostError } from './topics.ts';

/** One record of the log, as a consumer sees it. */
export interface LogRecord {
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** The record's timestamp; the broker's append time where the topic says so. */
  readonly appendedAt: Micros;
}

/** What a run may steer from its callbacks. */
export interface Steering {
  pause(partitions: readonly number[]): void;
  /** Goes on reading a partition at an offset. */
  resumeAt(partition: number, offset: number): void;
  commit(offsets: ReadonlyMap<number, number>): Promise<void>;
}

export interface RecordBatch {
  readonly partition: number;
  readonly records: readonly LogRecord[];
  /** Offset after the batch, holes and control records included. */
  readonly nextOffset: number;
}

export interface ConsumeOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  /** Asked at each connection: a reader of all partitions takes a fresh name each time. */
  readonly groupId: () => string;
  readonly concurrency: number;
  readonly pace: Pace;
  /** Called before the first record of each group generation; must not wait. */
  onJoin(partitions: readonly number[], memberId: string, steering: Steering): void;
  onBatch(batch: RecordBatch): Promise<void>;
  /** Next offset wanted of a partition; undefined when none is. */
  nextOffset(partition: number): number | undefined;
  /** The coordinator refused a heartbeat: the partition may be another member's already. */
  onBeatRefused?(partition: number): void;
  /** The run cannot go on; the process should end and be started again. */
  onFatal(error: Error): void;
}

export interface Run {
  /** Offsets wanted next are behind the log's end by this many records. */
  lag(): number;
  /** Whether the consumer is in its group and the broker answers it. */
  isJoined(): boolean;
  close(): Promise<void>;
}

/** A killed member of a group costs its successor this long; below 6 s brokers refuse by default. */
const SESSION_TIMEOUT_MS = 6_000;
const REBALANCE_TIMEOUT_MS = 10_000;
const HEARTBEAT_INTERVAL_MS = 1_000;
const FETCH_BYTES_MAX = 8 * 1024 * 1024;
const PARTITION_BYTES_MAX = 1024 * 1024;
const HANDLER_CHECK_MS = 50;
/** A broker that hangs answers no fetch; the library waits for 10 s before it says so. */
const FETCH_SILENCE_MAX_MS = 2_500;
/** Fetches a second without data above which the broker is gone (kafkajs PR 1402 spins). */
const EMPTY_FETCHES_PER_S_MAX = 200;

/** Consumes until closed; after a crash of the library's consumer it builds a new one. */
export function consume(options: ConsumeOptions): Run {
  const { client, topic } = options;
  let consumer: Consumer | undefined;
  let joined = false;
  let fetchedAt = 0;
  let closed = false;
  let attempts = 0;
  let retry: NodeJS.Timeout | undefined;
  const busy = { handlers: 0 };
  const pacer = createPacer(options.pace);

  const start = async () => {
    const current = createConsumer(client, options.groupId(), options.pace);
    consumer = current;
    // Events of a consumer that was given up must not steer its successor.
    const isCurrent = () => !closed && consumer === current;
    const crash = once((error: Error) => {
      discard(current);
      if (!isCurrent()) return;
      consumer = undefined;
      joined = false;
      client.log.warn({ err: error, topic }, 'the consumer lost the log; it connects again');
      const wait = 250 + backoffMs(attempts, { firstMs: 500, maxMs: 3_000 });
      attempts += 1;
      retry = setTimeout(begin, wait);
    });
    guardAgainstSpin(current, crash);
    current.on('consumer.crash', ({ payload }) => crash(payload.error));
    current.on('consumer.group_join', ({ payload }) => {
      if (!isCurrent()) return;
      joined = true;
      fetchedAt = performance.now();
      attempts = 0;
      const partitions = payload.memberAssignment[topic] ?? [];
      options.onJoin(partitions, payload.memberId, steer(current, topic));
    });
    current.on('consumer.fetch', () => {
      fetchedAt = performance.now();
    });
    current.on('consumer.rebalancing', () => {
      if (isCurrent()) joined = false;
    });
    current.on('consumer.start_batch_process', ({ payload }) => {
      if (isCurrent()) passFiltered(options, payload);
    });
    try {
      await current.connect();
      await current.subscribe({ topic, fromBeginning: true });
      if (closed) return;
      await current.run({
        autoCommit: false,
        partitionsConsumedConcurrently: options.concurrency,
        eachBatch: async ({ batch, heartbeat, isRunning, isStale }) => {
          if (!isCurrent() || !isRunning() || isStale()) return;
          busy.handlers += 1;
          // Long work (ClickHouse away, the registry silent) must not cost the session.
          const beat = setInterval(() => {
            heartbeat().catch(() => options.onBeatRefused?.(batch.partition));
          }, HEARTBEAT_INTERVAL_MS);
          try {
            await handle(options, batch);
            if (options.pace.pauseMs !== 0) await pacer.pause();
          } catch (error) {
            if (!isLibraryError(error)) options.onFatal(error as Error);
            throw error;
          } finally {
            clearInterval(beat);
            busy.handlers -= 1;
          }
        },
      });
    } catch (error) {
      crash(error as Error);
    }
  };

  let starting: Promise<void> = Promise.resolve();
  const begin = () => {
    // The old consumer's last batch may still be at work: two readers must never overlap.
    if (busy.handlers > 0) retry = setTimeout(begin, HANDLER_CHECK_MS);
    else starting = start();
  };
  const watch = watchProgress(options, () => busy.handlers > 0);
  begin();
  return {
    lag: watch.lag,
    isJoined() {
      const silence = performance.now() - fetchedAt - options.pace.waitMs;
      return joined && !closed && (busy.handlers > 0 || silence < FETCH_SILENCE_MAX_MS);
    },
    async close() {
      closed = true;
      clearTimeout(retry);
      await watch.close();
      const last = consumer;
      // Stopped before it has joined, the library's consumer would join all the same and go on
      // consuming (kafkajs #1639): its start is waited for.
      const end = starting.then(() => last?.stop()).then(() => last?.disconnect());
      await Promise.race([
        end.catch(() => undefined),
        new Promise((resolve) => setTimeout(resolve, 3_000).unref()),
      ]);
    },
  };
}

/**
 * Goes past a batch that held only control records or an aborted transaction: the library skips it
 * without calling us, and a position left before it would look lost, or stalled.
 */
function passFiltered(
  options: ConsumeOptions,
  batch: { partition: number; batchSize: number; firstOffset: string; lastOffset: string },
): void {
  const wanted = options.nextOffset(batch.partition);
  const nextOffset = Number(batch.lastOffset) + 1;
  if (batch.batchSize > 0 || wanted === undefined || !(nextOffset > wanted)) return;
  options.onBatch({ partition: batch.partition, records: [], nextOffset }).catch(options.onFatal);
}

async function handle(options: ConsumeOptions, batch: Batch): Promise<void> {
  const wanted = options.nextOffset(batch.partition);
  if (wanted === undefined) return;
  // An offset outside the log makes the library jump without an error (measured).
  const fetched = Number((batch as Batch & { fetchedOffset: string }).fetchedOffset);
  if (fetched > wanted) {
    const place = `${batch.topic} partition ${batch.partition}`;
    throw new PositionLostError(`${place}: offset ${wanted} was wanted, the log gave ${fetched}.`);
  }
  const records: LogRecord[] = [];
  for (const { offset, key, value, timestamp } of batch.messages) {
    const at = Number(offset);
    if (at < wanted) continue;
    records.push({ offset: at, key, value, appendedAt: Number(timestamp) * 1000 });
  }
  await options.onBatch({
    partition: batch.partition,
    records,
    nextOffset: Math.max(wanted, Number(batch.lastOffset()) + 1),
  });
}

function createConsumer(client: KafkaClient, groupId: string, pace: Pace): Consumer {
  const kafka: Kafka = openKafka(client, {
    requestTimeoutMs: 10_000,
    retry: {
      retries: 2,
      initialRetryTime: 100,
      maxRetryTime: 500,
      restartOnFailure: async () => false,
    },
  });
  return kafka.consumer({
    groupId,
    sessionTimeout: SESSION_TIMEOUT_MS,
    rebalanceTimeout: REBALANCE_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_INTERVAL_MS,
    maxWaitTimeInMs: pace.waitMs,
    minBytes: pace.minBytes,
    maxBytes: FETCH_BYTES_MAX,
    maxBytesPerPartition: PARTITION_BYTES_MAX,
    allowAutoTopicCreation: false,
    retry: {
      retries: 2,
      initialRetryTime: 100,
      maxRetryTime: 500,
      restartOnFailure: async () => false,
    },
  });
}

function steer(consumer: Consumer, topic: string): Steering {
  return {
    pause: (partitions) => consumer.pause([{ topic, partitions: [...partitions] }]),
    resumeAt(partition, offset) {
      consumer.seek({ topic, partition, offset: String(offset) });
      consumer.resume([{ topic, partitions: [partition] }]);
    },
    commit: (offsets) =>
      consumer.commitOffsets(
        [...offsets].map(([partition, offset]) => ({ topic, partition, offset: String(offset) })),
      ),
  };
}

function guardAgainstSpin(consumer: Consumer, crash: (error: Error) => void): void {
  let fetches = 0;
  let windowStart = performance.now();
  consumer.on('consumer.start_batch_process', () => {
    fetches = 0;
  });
  consumer.on('consumer.fetch_start', () => {
    const now = performance.now();
    if (now - windowStart > 1_000) {
      windowStart = now;
      fetches = 0;
    }
    fetches += 1;
    if (fetches > EMPTY_FETCHES_PER_S_MAX) crash(new Error('The broker is gone.'));
  });
}

function discard(consumer: Consumer): void {
  consumer
    .stop()
    .then(() => consumer.disconnect())
    .catch(() => undefined);
}

function isLibraryError(error: unknown): boolean {
  return error instanceof Error && error.name.startsWith('KafkaJS');
}

function once<A>(action: (argument: A) => void): (argument: A) => void {
  let done = false;
  return (argument) => {
    if (done) return;
    done = true;
    action(argument);
  };
}
