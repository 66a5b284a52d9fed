import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { KafkaClient } from '../../../lib/kafka/client.ts';
import type { LogRecord } from '../../../lib/kafka/consume.ts';
import { openTail } from '../../../lib/kafka/tail.ts';
import { fetchOffsetBounds, type OffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log.ts';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import { createPartitionReader, type Reading, warmUpFrom } from '../../../lib/partition-reader.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { Board } from './board.ts';

/** Offsets of one partition: `from` is read, `until` is not. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/**
 * Reads pills with effect, bounded in time. `enough` ends it early, and that is no failure.
 * @returns why it could not be read to the end. Never rejects.
 */
export type PastReading = (
  spans: ReadonlyMap<number, Span>,
  onPill: (pill: EffectivePill) => void,
  enough?: AbortSignal,
) => Promise<NotRecovered | undefined>;

export interface PastOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly topic: string;
  readonly groupPrefix: string;
  readonly settings: TopicSettings;
  readonly log: Log;
  readonly board: Board;
}

/** The log does not hold what was asked for any more. */
export class PastLostError extends Error {
  override readonly name = 'PastLostError';
}

/**
 * Effective receive times lie within 5 s of the append time, so what was received before the first
 * record of a stretch has an order time below that record's by this much at the most.
 */
const RECEIVE_SLACK_MICROS = 10_000_000;
/** How often the progress of a reading is looked at. */
const LOOK_MS = 5;
/** Records that are judged in one turn of the event loop: about 2 ms. */
const RECORDS_A_TURN = 200;

/**
 * Reads pills with effect from the log, as they were when they were new: each partition from the
 * repeat window before its span on, so that repeats are known exactly.
 *
 * Whether a pill was `late` depends on its symbol's older pills. One whose symbol is not in that
 * window is not late if it is younger than the window; else the present state of the symbol
 * decides; where that cannot tell either, it is called late, which never replaces anything.
 * @throws PastLostError when a span begins before the log does; PositionLostError when it does
 *   so a moment later, since the log deletes what is too old meanwhile
 */
export async function readPast(
  options: PastOptions,
  spans: ReadonlyMap<number, Span>,
  onPill: (pill: EffectivePill) => void,
  signal: AbortSignal,
): Promise<void> {
  const bounds = await fetchOffsetBounds(options.client, options.topic);
  signal.throwIfAborted();
  const readers = new Map<number, SpanReader>();
  const from = new Map<number, number>();
  for (const [partition, held] of bounds) {
    const span = spans.get(partition);
    if (span === undefined || span.from >= span.until) {
      from.set(partition, held.high);
      continue;
    }
    const reader = createSpanReader(options, { partition, span, held, onPill });
    readers.set(partition, reader);
    from.set(partition, reader.start);
  }
  if (readers.size === 0) return;
  let fault: Error | undefined;
  const tail = await openTail({
    ...{ client: options.client, topic: options.topic, groupPrefix: options.groupPrefix, from },
    onFatal: (error) => {
      fault = error;
    },
    async onRecords(partition, records) {
      await readers.get(partition)?.read(records, signal);
    },
  });
  try {
    // A span may end in offsets without a record, so the reader's progress is what counts.
    const isDone = ([partition, { until }]: [number, SpanReader]) =>
      (tail.nextOffset(partition) ?? 0) >= until;
    while (![...readers].every(isDone)) {
      if (fault !== undefined) throw fault;
      await sleep(LOOK_MS, undefined, { signal });
    }
  } finally {
    // Its group is its own: nobody waits for it to leave.
    void tail.close().catch(() => undefined);
  }
}

interface SpanReader {
  /** First offset that it must be given. */
  readonly start: number;
  readonly until: number;
  read(records: readonly LogRecord[], signal: AbortSignal): Promise<void>;
}

function createSpanReader(
  { settings, schemas, log, board }: PastOptions,
  of: {
    readonly partition: number;
    readonly span: Span;
    readonly held: OffsetBounds;
    readonly onPill: (pill: EffectivePill) => void;
  },
): SpanReader {
  const { partition, span, held, onPill } = of;
  if (span.from < held.low) {
    throw new PastLostError(`Partition ${partition} begins at ${held.low}, not at ${span.from}.`);
  }
  const start = warmUpFrom(span.from, held.low, settings);
  const reader = createPartitionReader({
    ...{ partition, start, settings, schemas, log, compareContent: false },
    symbols: new Map(),
  });
  const known = new Set<string>();
  let firstReceivedAt: Micros | undefined;

  const lateAfterAll = (pill: EffectivePill): boolean => {
    if (pill.late || known.has(pill.symbol) || start === 0) return pill.late;
    if (pill.order >= firstReceivedAt! + RECEIVE_SLACK_MICROS) return false;
    return board.get(pill.symbol)?.offset !== pill.offset;
  };
  const take = (reading: Reading) => {
    if (reading.kind !== 'effect') return;
    const { pill } = reading;
    firstReceivedAt ??= pill.received_at;
    // One that the board does not know was refused for the bound on symbols.
    if (pill.offset >= span.from && board.get(pill.symbol) !== undefined) {
      onPill({ ...pill, late: lateAfterAll(pill) });
    }
    known.add(pill.symbol);
  };
  return {
    start,
    until: span.until,
    async read(records, signal) {
      for (const [at, record] of records.entries()) {
        if (record.offset >= span.until) return;
        const reading = reader.read(record, signal);
        take(reading instanceof Promise ? await reading : reading);
        // One who comes back must not hold up those who are here.
        if (at % RECORDS_A_TURN === RECORDS_A_TURN - 1) await nextTurn();
      }
    },
  };
}
