import { GroupCommit } from '../batch/group-commit.ts';
import { noteDependency } from '../metrics/dependencies.ts';
import { createCounter, createHistogram, LATENCY_BUCKETS_S } from '../metrics/metrics.ts';
import type { KafkaClient } from './kafka-client.ts';
import type { Ack, OutRecord } from './log-record.ts';
import { openProduceLink, type ProduceLink } from './produce-link.ts';

/**
 * The records were not acknowledged. `overloaded`: none was sent; `unavailable`: whether they are
 * stored is unknown.
 */
export class ProduceError extends Error {
  override readonly name = 'ProduceError';
  readonly code: 'overloaded' | 'unavailable';
  constructor(code: ProduceError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type Producer = Awaited<ReturnType<typeof openProducer>>;

export const PRODUCER_LIMITS = {
  /** Every call is answered within this time. */
  deadlineMs: 2_000,
  /** Records waiting or in flight; more are refused as `overloaded`. */
  recordsMax: 20_000,
  /**
   * Time between the beginnings of two batches. The first record after an idle period is sent at
   * once; under load, records share requests, which cost the broker, every reader and this process
   * the same whether full or nearly empty.
   */
  batchIntervalMs: 2,
  /** Bytes of one batch; below the broker's message.max.bytes of 1 MiB. */
  batchBytesMax: 768 * 1024,
};

export type ProducerLimits = Readonly<typeof PRODUCER_LIMITS>;

/** A connection whose batch hangs this long is discarded (observed: 5.2 s in an outage). */
const HANG_MAX_MS = 4_000;
/** Failures in a row after which a connection is replaced: a disconnected one never recovers. */
const FAILURES_PER_CONNECTION = 3;
/** Pause after a failed batch; each kafkajs failure asks for metadata (kafkajs #1324). */
const FAILURE_PAUSE_MS = 100;
const DEADLINE_TICK_MS = 50;
const WARN_EVERY_MS = 5_000;

interface Call {
  readonly records: readonly OutRecord[];
  readonly deadline: number;
  resolve(acks: readonly Ack[]): void;
  reject(error: ProduceError): void;
}

const batchSeconds = createHistogram({
  name: 'pillole_produce_batch_seconds',
  help: 'Time of one produce request, by outcome.',
  labelNames: ['outcome'] as const,
  buckets: LATENCY_BUCKETS_S,
});
const producedRecords = createCounter({
  name: 'pillole_produced_records_total',
  help: 'Records acknowledged by the log.',
});

/** Logs failed batches: an outage fails ten a second, and one line in five seconds is enough. */
function createFailureLog({ log }: KafkaClient) {
  let failures = 0;
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (error: Error, records: number) => {
    failures += 1;
    if (performance.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = performance.now();
    log.warn({ err: error, records, failures }, 'a batch was not acknowledged');
    failures = 0;
  };
}

/** The connection that sends batches; replaced after a failure that discards it. */
async function openConnection(client: KafkaClient, { deadlineMs }: ProducerLimits) {
  /** Undefined after a failure that discards the connection: the next batch opens another. */
  let link: ProduceLink | undefined = await openProduceLink(client, deadlineMs);
  let failedInARow = 0;
  const warn = createFailureLog(client);
  return {
    /** @throws the library's error */
    async send(batch: readonly Call[]): Promise<Ack[]> {
      const started = performance.now();
      const observe = (outcome: 'ok' | 'failed') => {
        batchSeconds.observe({ outcome }, (performance.now() - started) / 1000);
        noteDependency('kafka', outcome === 'ok');
      };
      try {
        link ??= await openProduceLink(client, deadlineMs);
        const acks = await withHangLimit(link.send(batch.flatMap(({ records }) => records)));
        failedInARow = 0;
        producedRecords.inc(acks.length);
        observe('ok');
        return acks;
      } catch (error) {
        observe('failed');
        warn(error as Error, batch.length);
        failedInARow += 1;
        if (error instanceof HangError || failedInARow >= FAILURES_PER_CONNECTION) {
          link?.close().catch(() => undefined);
          link = undefined;
          failedInARow = 0;
        }
        throw error;
      }
    },
    close: () => link?.close(),
  };
}

/**
 * Opens a producer with one batch in flight: measured 29.4k pills/s against 27.5k with two, and
 * order is kept. The producer is not idempotent: a pill's identity makes a repeat harmless.
 */
export async function openProducer(client: KafkaClient, limits: ProducerLimits = PRODUCER_LIMITS) {
  const connection = await openConnection(client, limits);
  const open = createOpenCalls();
  let healthy = true;
  let closed = false;

  const group = new GroupCommit<Call>({
    sizeMax: limits.batchBytesMax,
    sizeOf: bytesOf,
    intervalMs: limits.batchIntervalMs,
    async commit(batch) {
      try {
        const acks = await connection.send(batch);
        healthy = true;
        let at = 0;
        for (const call of batch) {
          open.answer(call, acks.slice(at, at + call.records.length));
          at += call.records.length;
        }
      } catch (cause) {
        healthy = false;
        const error = new ProduceError('unavailable', 'The log did not acknowledge.', { cause });
        for (const call of batch) open.answer(call, error);
        await pause(FAILURE_PAUSE_MS);
      }
      return [];
    },
  });
  const expire = () => {
    const expired = open.expire(`No acknowledgement within ${limits.deadlineMs} ms.`);
    if (expired === 0) return;
    const waited = group.drop((call) => !open.has(call));
    if (waited.length < expired) healthy = false;
  };
  const ticker = setInterval(expire, DEADLINE_TICK_MS);

  return {
    /**
     * Sends records with acks=all. Calls that arrive while a batch is in flight share the next one.
     * Acks are in the order of the records.
     * @throws ProduceError within `deadlineMs`, always; at `deadline` (of `performance.now()`) when
     * that is earlier.
     */
    produce(
      records: readonly OutRecord[],
      deadline = Number.POSITIVE_INFINITY,
    ): Promise<readonly Ack[]> {
      if (closed) return Promise.reject(new ProduceError('overloaded', 'Shutting down.'));
      if (open.records + records.length > limits.recordsMax) {
        return Promise.reject(new ProduceError('overloaded', 'Too many records are waiting.'));
      }
      return new Promise((resolve, reject) => {
        const until = Math.min(deadline, performance.now() + limits.deadlineMs);
        const call = { records, deadline: until, resolve, reject };
        open.add(call);
        group.push(call);
      });
    },
    /** Whether the last batch was acknowledged. */
    isHealthy: () => healthy,
    /** Waits for records in flight (at most the deadline), then disconnects. */
    async close(): Promise<void> {
      closed = true;
      await group.close(limits.deadlineMs);
      clearInterval(ticker);
      open.expire('Shutting down; not acknowledged.', Number.POSITIVE_INFINITY);
      await Promise.race([connection.close(), pause(1_000)]);
    },
  };
}

/** Calls without an answer, waiting or in flight; each gets one at its deadline at the latest. */
function createOpenCalls() {
  const calls = new Set<Call>();
  let records = 0;
  /** Does nothing if the call was answered at its deadline: its records may be stored nevertheless. */
  const answer = (call: Call, acks: readonly Ack[] | ProduceError) => {
    if (!calls.delete(call)) return;
    records -= call.records.length;
    if (acks instanceof ProduceError) call.reject(acks);
    else call.resolve(acks);
  };
  return {
    get records() {
      return records;
    },
    has: (call: Call) => calls.has(call),
    add(call: Call) {
      calls.add(call);
      records += call.records.length;
    },
    answer,
    /** Answers the calls whose deadline has passed. @returns how many */
    expire(why: string, now = performance.now()): number {
      const before = calls.size;
      // A caller may have given an earlier deadline, so the calls are not ordered by deadline.
      for (const call of calls) {
        if (call.deadline <= now) answer(call, new ProduceError('unavailable', why));
      }
      return before - calls.size;
    },
  };
}

function bytesOf({ records }: Call): number {
  let bytes = 0;
  for (const { key, value } of records) bytes += value.length + key.length + 32;
  return bytes;
}

class HangError extends Error {
  override readonly name = 'HangError';
}

function withHangLimit<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new HangError(`No answer in ${HANG_MAX_MS} ms.`)),
      HANG_MAX_MS,
    );
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
