import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '../timing/backoff.ts';
import type { KafkaClient } from './kafka-client.ts';
import type { LogRecord } from './log-record.ts';
import { createPacer, type Pace } from './pace.ts';
import { watchProgress } from './progress-watch.ts';
import { PositionLostError } from './topics.ts';
import { type Cluster, openCluster } from './wire/cluster.ts';
import { BrokerError, ERROR_CODES } from './wire/error-codes.ts';
import { type FetchedPartition, fetchRequest } from './wire/fetch-request.ts';
import { createFetchSession } from './wire/fetch-session.ts';
import { BatchFaultError, decodeRecordSet } from './wire/record-batch.ts';

export interface ReadOptions {
  readonly client: KafkaClient;
  readonly topic: string;
  readonly partitions: readonly number[];
  readonly pace: Pace;
  /** Next offset wanted from a partition. */
  nextOffset(partition: number): number;
  /**
   * `nextOffset` is the offset after the batch, holes and control records included. The next fetch
   * waits for the promise; a handler without one saves a turn of the event loop.
   */
  onBatch(batch: {
    readonly partition: number;
    readonly records: readonly LogRecord[];
    readonly nextOffset: number;
  }): Promise<void> | undefined;
  /** The reader cannot continue; the process should exit and be restarted. */
  onFatal(error: Error): void;
}

const BYTES_MAX = 8 * 1024 * 1024;
const PARTITION_BYTES_MAX = 1024 * 1024;
/** A connection whose fetch is not answered for so long is replaced. */
const REQUEST_TIMEOUT_MS = 10_000;
/** For a connection's other requests: a broker that hangs is left for another address. */
const CONNECT_TIMEOUT_MS = 3_000;
/** A hanging broker answers no fetch; the reader is not connected after this time. */
const SILENCE_MAX_MS = 2_500;
/** The wait before another connection: `leastMs`, and a random one that grows with failures. */
const RECONNECT_MS = { leastMs: 250, firstMs: 500, maxMs: 3_000 };
const HANDLER_CHECK_MS = 50;
const CLOSE_MAX_MS = 3_000;

/** One connection. What it receives once it is no longer current does not count. */
interface Attempt {
  isCurrent: boolean;
  /** Time of the last answer of each leader; of `performance.now()`, undefined before the first. */
  readonly answeredAt: Map<string, number | undefined>;
}

/** An error of a handler, or one of the log that another connection would not mend. */
class FatalError extends Error {
  override readonly name = 'FatalError';
  override readonly cause: Error;
  constructor(cause: Error) {
    super(cause.message);
    this.cause = cause;
  }
}

/**
 * Reads partitions of a topic from their leaders until closed. After a failure, and when a leader
 * has moved, another connection continues at the next wanted offsets.
 */
export function readPartitions(options: ReadOptions) {
  const { client, topic, pace } = options;
  const closing = new AbortController();
  let attempt: Attempt | undefined;
  const batches = createBatchHandler(options);

  /** @returns the error that ended the connection */
  const connect = async (): Promise<Error> => {
    const current: Attempt = { isCurrent: true, answeredAt: new Map() };
    const cluster = openCluster(client, CONNECT_TIMEOUT_MS);
    attempt = current;
    try {
      await followLeaders(options, cluster, current, batches.handle);
      return new Error('The reader was closed.');
    } catch (error) {
      return error as Error;
    } finally {
      current.isCurrent = false;
      cluster.disconnect().catch(() => undefined);
    }
  };
  const run = async () => {
    let failures = 0;
    while (!closing.signal.aborted) {
      const error = await connect();
      if (closing.signal.aborted) return;
      if (error instanceof FatalError) return options.onFatal(error.cause);
      client.log.warn({ err: error, topic }, 'the reader lost the log and reconnects');
      if (attempt !== undefined && hasAnswered(attempt)) failures = 0;
      const waitMs = RECONNECT_MS.leastMs + backoffMs(failures, RECONNECT_MS);
      failures += 1;
      await sleep(waitMs, undefined, { signal: closing.signal });
      // The last batches may still be in progress: two connections must never overlap.
      while (batches.isBusy()) {
        await sleep(HANDLER_CHECK_MS, undefined, { signal: closing.signal });
      }
    }
  };
  const watch = watchProgress(options, batches.isBusy);
  const ended = run().catch(() => undefined);

  return {
    /** Number of records between the next wanted offsets and the end of the log. */
    lag: watch.lag,
    /** Whether every leader answers, so that records can arrive. */
    isConnected(): boolean {
      if (attempt?.isCurrent !== true || !hasAnswered(attempt)) return false;
      const oldest = Math.min(...[...attempt.answeredAt.values()].map((at) => at!));
      return batches.isBusy() || performance.now() - oldest - pace.waitMs < SILENCE_MAX_MS;
    },
    /** Waits for the handler of a batch, at most 3 s. */
    async close(): Promise<void> {
      closing.abort();
      if (attempt !== undefined) attempt.isCurrent = false;
      await watch.close();
      const limit = new Promise((resolve) => setTimeout(resolve, CLOSE_MAX_MS).unref());
      await Promise.race([ended, limit]);
    },
  };
}

function hasAnswered({ answeredAt }: Attempt): boolean {
  return answeredAt.size > 0 && ![...answeredAt.values()].includes(undefined);
}

type Handle = ReturnType<typeof createBatchHandler>['handle'];

/** Reads from every leader. @throws as soon as one fails */
async function followLeaders(
  options: ReadOptions,
  cluster: Cluster,
  attempt: Attempt,
  handle: Handle,
): Promise<void> {
  const { topic, partitions } = options;
  await cluster.connect();
  await cluster.follow([topic]);
  const leaders = new Map<string, number[]>();
  for (const partition of partitions) {
    const node = cluster.leaderOf(topic, partition);
    if (node === undefined) throw new Error(`${topic}/${partition} has no leader.`);
    leaders.set(node, [...(leaders.get(node) ?? []), partition]);
  }
  for (const node of leaders.keys()) attempt.answeredAt.set(node, undefined);
  const loops = [...leaders].map(([node, own]) =>
    fetchLoop(options, own, attempt, handle, node, cluster),
  );
  await Promise.all(loops);
}

async function fetchLoop(
  { topic, pace, nextOffset }: ReadOptions,
  partitions: readonly number[],
  attempt: Attempt,
  handle: Handle,
  node: string,
  cluster: Cluster,
): Promise<void> {
  const session = createFetchSession();
  const sizes = { bytesMax: BYTES_MAX, partitionBytesMax: PARTITION_BYTES_MAX };
  // The first answer comes at once, and tells that the log answers.
  let waitMs = 0;
  while (attempt.isCurrent) {
    const wanted = new Map(partitions.map((partition) => [partition, nextOffset(partition)]));
    const bounds = { ...sizes, minBytes: pace.minBytes, waitMs };
    const request = fetchRequest({ topic, bounds, ...session.next(wanted) });
    const answer = await cluster.send(node, request, REQUEST_TIMEOUT_MS);
    if (!attempt.isCurrent) return;
    if (!session.accept(answer)) continue;
    if (answer.errorCode !== 0) throw new BrokerError(answer.errorCode, topic);
    attempt.answeredAt.set(node, performance.now());
    waitMs = pace.waitMs;
    const handled = handle(answer.partitions, wanted);
    if (handled !== undefined) await handled;
  }
}

/** Decodes what was fetched, hands it over, and holds the next fetch by the pace. */
function createBatchHandler(options: ReadOptions) {
  const { topic, pace } = options;
  const pacer = createPacer(pace);
  let busy = 0;
  const settle = async (handlers: readonly Promise<void>[]) => {
    busy += 1;
    try {
      const results = await Promise.allSettled(handlers);
      const failed = results.find(({ status }) => status === 'rejected');
      if (failed !== undefined) throw new FatalError((failed as PromiseRejectedResult).reason);
      if (pace.pauseMs !== 0) await pacer.pause();
    } finally {
      busy -= 1;
    }
  };
  return {
    isBusy: () => busy > 0,
    /**
     * @returns undefined if the next fetch need not wait
     * @throws FatalError, BrokerError
     */
    handle(
      fetched: readonly FetchedPartition[],
      wanted: ReadonlyMap<number, number>,
    ): Promise<void> | undefined {
      const handlers: Promise<void>[] = [];
      let isEmpty = true;
      for (const part of fetched) {
        const { partition } = part;
        const from = wanted.get(partition);
        if (from === undefined) continue;
        const batch = decode(topic, part, from);
        if (batch.nextOffset === from) continue;
        isEmpty = false;
        try {
          const handled = options.onBatch({ partition, ...batch });
          if (handled !== undefined) handlers.push(handled);
        } catch (error) {
          throw new FatalError(error as Error);
        }
      }
      if (isEmpty || (handlers.length === 0 && pace.pauseMs === 0)) return undefined;
      return settle(handlers);
    },
  };
}

function decode(
  topic: string,
  { partition, errorCode, recordSet, aborted }: FetchedPartition,
  from: number,
) {
  const name = `${topic} partition ${partition}`;
  if (errorCode === ERROR_CODES.OFFSET_OUT_OF_RANGE) {
    throw new FatalError(
      new PositionLostError(`${name}: the requested offset ${from} is outside the log.`),
    );
  }
  if (errorCode !== 0) throw new BrokerError(errorCode, name);
  try {
    return decodeRecordSet(recordSet, from, aborted);
  } catch (error) {
    if (!(error instanceof BatchFaultError)) throw error;
    throw new FatalError(new BatchFaultError(`${name}: ${error.message}`, { cause: error }));
  }
}
