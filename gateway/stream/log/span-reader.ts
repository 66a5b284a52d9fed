import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import {
  createPartitionReader,
  type Reading,
  warmUpFrom,
} from '../../../domain/order/partition-reader.ts';
import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import type { LogRecord } from '../../../lib/kafka/log-record.ts';
import { openTail } from '../../../lib/kafka/tail.ts';
import { fetchOffsetBounds, type OffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';
import type { LatestPills } from './latest-pills.ts';

/** Offsets of one partition: `from` is inclusive, `until` exclusive. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/**
 * Reads pills with effect within a time limit. `enough` ends the reading early without a failure.
 * @returns why the spans could not be read to their end. Never rejects.
 */
export type ReadSpans = (
  spans: ReadonlyMap<number, Span>,
  onPill: (pill: EffectivePill) => void,
  enough?: AbortSignal,
) => Promise<ResumeReason | undefined>;

interface SpanReaderDeps {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly topic: string;
  readonly settings: TopicSettings;
  readonly log: Log;
  readonly latestPills: LatestPills;
}

/** The log no longer holds the requested span. */
export class SpanLostError extends Error {
  override readonly name = 'SpanLostError';
}

/**
 * Effective receive times lie within 5 s of the append time, so the order time of a pill received
 * before the first record of a span exceeds that record's receive time by less than this.
 */
const RECEIVE_SLACK_MICROS = 10_000_000;
/** How often the progress of a reading is checked. */
const POLL_MS = 5;
/** Records that are judged in one turn of the event loop: about 2 ms. */
const RECORDS_PER_TURN = 200;

/**
 * Reads pills with effect from the log exactly as they were first judged. Each partition is read
 * from the repeat window before its span, so that repeats are recognised.
 *
 * Whether a pill was `late` depends on older pills of its symbol. A pill whose symbol does not
 * occur in that window is not late if it is newer than the window; otherwise the current state of
 * the symbol decides. If this state is inconclusive, the pill counts as late and replaces nothing.
 * @throws SpanLostError when a span begins before the log does; PositionLostError when the log
 *   deletes the beginning of a span while it is read
 */
export async function readSpans(
  options: SpanReaderDeps,
  spans: ReadonlyMap<number, Span>,
  onPill: (pill: EffectivePill) => void,
  signal: AbortSignal,
): Promise<void> {
  const { client, topic } = options;
  const bounds = await fetchOffsetBounds(client, topic);
  signal.throwIfAborted();
  const readers = new Map<number, ReturnType<typeof createSpanReader>>();
  const from = new Map<number, number>();
  for (const [partition, held] of bounds) {
    const span = spans.get(partition);
    if (span === undefined || span.from >= span.until) {
      from.set(partition, held.high);
      continue;
    }
    const reader = createSpanReader(options, partition, span, held, onPill);
    readers.set(partition, reader);
    from.set(partition, reader.start);
  }
  if (readers.size === 0) return;
  let fault: Error | undefined;
  const tail = await openTail({
    client,
    topic,
    from,
    onFatal: (error) => {
      fault = error;
    },
    async onRecords(partition, records) {
      await readers.get(partition)?.read(records, signal);
    },
  });
  try {
    // A span may end in offsets without a record, so the progress of the tail counts.
    const isDone = (partition: number) =>
      (tail.nextOffset(partition) ?? 0) >= spans.get(partition)!.until;
    while (![...readers.keys()].every(isDone)) {
      if (fault !== undefined) throw fault;
      await sleep(POLL_MS, undefined, { signal });
    }
  } finally {
    // The consumer group is used by this reading alone, so no member waits for it to leave.
    void tail.close().catch(() => undefined);
  }
}

function createSpanReader(
  { settings, schemas, log, latestPills }: SpanReaderDeps,
  partition: number,
  span: Span,
  held: OffsetBounds,
  onPill: (pill: EffectivePill) => void,
) {
  if (span.from < held.low) {
    throw new SpanLostError(`Partition ${partition} begins at ${held.low}, not at ${span.from}.`);
  }
  const start = warmUpFrom(span.from, held.low, settings);
  const reader = createPartitionReader({
    partition,
    start,
    settings,
    schemas,
    log,
    compareContent: false,
    symbols: new Map(),
  });
  const known = new Set<string>();
  let firstReceivedAt: Micros | undefined;

  const wasLate = (pill: EffectivePill): boolean => {
    if (pill.late || known.has(pill.symbol) || start === 0) return pill.late;
    if (pill.order >= firstReceivedAt! + RECEIVE_SLACK_MICROS) return false;
    return latestPills.get(pill.symbol)?.offset !== pill.offset;
  };
  const take = (reading: Reading) => {
    if (reading.kind !== 'effect') return;
    const { pill } = reading;
    firstReceivedAt ??= pill.received_at;
    // A symbol that `latestPills` does not know was refused by the bound on symbols.
    if (pill.offset >= span.from && latestPills.get(pill.symbol) !== undefined) {
      onPill({ ...pill, late: wasLate(pill) });
    }
    known.add(pill.symbol);
  };
  return {
    /** First offset to pass to `read`. */
    start,
    async read(records: readonly LogRecord[], signal: AbortSignal): Promise<void> {
      for (const [at, record] of records.entries()) {
        if (record.offset >= span.until) return;
        const reading = reader.read(record, signal);
        take(reading instanceof Promise ? await reading : reading);
        // A resume must not delay the live connections.
        if (at % RECORDS_PER_TURN === RECORDS_PER_TURN - 1) await nextTurn();
      }
    },
  };
}
