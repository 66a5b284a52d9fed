import type { Batch, Consumer } from 'kafkajs';
import { backoffMs } from '../timing/backoff.ts';
import { type KafkaClient, openKafka } from './kafka-client.ts';
import type { LogRecord } from './log-record.ts';
import { createPacer, type Pace } from './pace.ts';
import { watchProgress } from './progress-watch.ts';
import { PositionLostError } from './topics.ts';

/** Controls that a consumer hands to its callbacks. */
export interface Steering {
  pause(partitions: readonly number[]): void;
  /** Resumes a partition at an offset. */
  resumeAt(partition: number, offset: number): void;
  commit(offsets: ReadonlyMap<number, number>): Promise<void>;
}

interface ConsumeOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  /** Called at each connection: a reader of all partitions takes a fresh name each time. */
  readonly groupId: () => string;
  readonly concurrency: number;
  readonly pace: Pace;
  /** Called before the first record of each group generation; must return at once. */
  onJoin(partitions: readonly number[], memberId: string, steering: Steering): void;
  /** `nextOffset` is the offset after the batch, holes and control records included. */
  onBatch(batch: {
    readonly partition: number;
    readonly records: readonly LogRecord[];
    readonly nextOffset: number;
  }): Promise<void>;
  /** Next offset wanted from a partition; undefined when the partition is not read. */
  nextOffset(partition: number): number | undefined;
  /** The coordinator refused a heartbeat: the partition may already belong to another member. */
  onHeartbeatRefused?(partition: number): void;
  /** The consumer cannot continue; the process should exit and be restarted. */
  onFatal(error: Error): void;
}

/** The successor of a killed group member waits this long. Brokers refuse less than 6 s by default. */
const SESSION_TIMEOUT_MS = 6_000;
const REBALANCE_TIMEOUT_MS = 10_000;
const HEARTBEAT_INTERVAL_MS = 1_000;
const FETCH_BYTES_MAX = 8 * 1024 * 1024;
const PARTITION_BYTES_MAX = 1024 * 1024;
const HANDLER_CHECK_MS = 50;
/** A hanging broker answers no fetch; the library reports it only after 10 s. */
const FETCH_SILENCE_MAX_MS = 2_500;
/** More empty fetches per second mean that the broker is gone (kafkajs PR 1402: it spins). */
const EMPTY_FETCHES_PER_S_MAX = 200;

/** Consumes until closed. After a crash of the library's consumer, a new one is created. */
export function consume(options: ConsumeOptions) {
  const { client, topic } = options;
  let consumer: Consumer | undefined;
  let joined = false;
  let fetchedAt = 0;
  let closed = false;
  let attempts = 0;
  let retry: NodeJS.Timeout | undefined;
  const processor = createBatchProcessor(options);

  const onCrash = (crashed: Consumer) =>
    once((error: Error) => {
      discard(crashed);
      if (closed || consumer !== crashed) return;
      consumer = undefined;
      joined = false;
      client.log.warn({ err: error, topic }, 'the consumer lost the log and reconnects');
      const wait = 250 + backoffMs(attempts, { firstMs: 500, maxMs: 3_000 });
      attempts += 1;
      retry = setTimeout(begin, wait);
    });
  const follow = (current: Consumer, crash: (error: Error) => void) => {
    // Events of a discarded consumer must not affect its successor.
    const isCurrent = () => !closed && consumer === current;
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
    return isCurrent;
  };
  const start = async () => {
    const current = createConsumer(client, options.groupId(), options.pace);
    consumer = current;
    const crash = onCrash(current);
    const isCurrent = follow(current, crash);
    try {
      await current.connect();
      await current.subscribe({ topic, fromBeginning: true });
      if (closed) return;
      await current.run({
        autoCommit: false,
        partitionsConsumedConcurrently: options.concurrency,
        eachBatch: async ({ batch, heartbeat, isRunning, isStale }) => {
          if (isCurrent() && isRunning() && !isStale()) await processor.process(batch, heartbeat);
        },
      });
    } catch (error) {
      crash(error as Error);
    }
  };

  let starting: Promise<void> = Promise.resolve();
  const begin = () => {
    // The old consumer's last batch may still be in progress: two readers must never overlap.
    if (processor.isBusy()) retry = setTimeout(begin, HANDLER_CHECK_MS);
    else starting = start();
  };
  const watch = watchProgress(options, processor.isBusy);
  begin();
  return {
    /** Number of records between the next wanted offsets and the end of the log. */
    lag: watch.lag,
    /** Whether the consumer is in its group and the broker answers. */
    isJoined(): boolean {
      const silence = performance.now() - fetchedAt - options.pace.waitMs;
      return joined && !closed && (processor.isBusy() || silence < FETCH_SILENCE_MAX_MS);
    },
    async close(): Promise<void> {
      closed = true;
      clearTimeout(retry);
      await watch.close();
      const last = consumer;
      // A consumer that is stopped before it has joined would still join and consume
      // (kafkajs #1639), so its start is awaited first.
      const end = starting.then(() => last?.stop()).then(() => last?.disconnect());
      await Promise.race([
        end.catch(() => undefined),
        new Promise((resolve) => setTimeout(resolve, 3_000).unref()),
      ]);
    },
  };
}

/** Handles batches, and keeps the session alive meanwhile. */
function createBatchProcessor(options: ConsumeOptions) {
  const pacer = createPacer(options.pace);
  let handlers = 0;
  return {
    isBusy: () => handlers > 0,
    async process(batch: Batch, heartbeat: () => Promise<void>) {
      handlers += 1;
      // Long work (ClickHouse or the registry is away) must not expire the session.
      const beat = setInterval(() => {
        heartbeat().catch(() => options.onHeartbeatRefused?.(batch.partition));
      }, HEARTBEAT_INTERVAL_MS);
      try {
        await handle(options, batch);
        if (options.pace.pauseMs !== 0) await pacer.pause();
      } catch (error) {
        if (!isLibraryError(error)) options.onFatal(error as Error);
        throw error;
      } finally {
        clearInterval(beat);
        handlers -= 1;
      }
    },
  };
}

/**
 * Advances past a batch that held only control records or an aborted transaction. The library skips
 * such a batch without a call, and a position left before it would look lost or stalled.
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
  // For an offset outside the log, the library jumps elsewhere without an error (measured).
  const fetched = Number((batch as Batch & { fetchedOffset: string }).fetchedOffset);
  if (fetched > wanted) {
    throw new PositionLostError(
      `${batch.topic} partition ${batch.partition}: requested offset ${wanted}, got ${fetched}.`,
    );
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
  const retry = {
    retries: 2,
    initialRetryTime: 100,
    maxRetryTime: 500,
    restartOnFailure: async () => false,
  };
  return openKafka(client, { requestTimeoutMs: 10_000, retry }).consumer({
    groupId,
    sessionTimeout: SESSION_TIMEOUT_MS,
    rebalanceTimeout: REBALANCE_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_INTERVAL_MS,
    maxWaitTimeInMs: pace.waitMs,
    minBytes: pace.minBytes,
    maxBytes: FETCH_BYTES_MAX,
    maxBytesPerPartition: PARTITION_BYTES_MAX,
    allowAutoTopicCreation: false,
    retry,
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
    if (fetches > EMPTY_FETCHES_PER_S_MAX) crash(new Error('The broker is unreachable.'));
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
