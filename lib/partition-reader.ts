import {
  createDecoder,
  type Decoded,
  type DecodeFaultCode,
  type TopicSettings,
} from '../schemas/avro.ts';
import type { PillRecord } from '../schemas/pill.ts';
import type { SchemaClient } from '../schemas/registry.ts';
import type { Micros } from '../schemas/timestamp.ts';
import { decodeWith } from './decode.ts';
import type { LogRecord } from './kafka/consume.ts';
import type { Log } from './log.ts';
import {
  createPartitionJudge,
  type EffectivePill,
  type RejectCode,
  type SymbolState,
} from './order/judge.ts';
import { isBackfill, timesOf } from './order/time.ts';

/** What a record of the pills topic is to whoever reads it. */
export type Reading =
  /** Before the start: it only warmed the repeat window. `live` is when it came, if it was live. */
  | { readonly kind: 'warmed'; readonly live: Arrival | undefined }
  | { readonly kind: 'effect'; readonly pill: EffectivePill }
  /** `pill` is the one that came again. */
  | { readonly kind: 'repeat'; readonly conflict: boolean; readonly pill: PillRecord }
  | {
      readonly kind: 'rejected';
      readonly code: RejectCode | DecodeFaultCode;
      readonly reason: string;
    };

/** That a symbol's pill came, valid or not. */
export interface Arrival {
  readonly symbol: string;
  readonly receivedAt: Micros;
}

/** Reads one partition of the pills topic: decodes, then warms up or judges. */
export interface PartitionReader {
  /** First offset that has effect here. */
  readonly start: number;
  /**
   * Reads the next record; a promise only while its schema is being loaded.
   * @throws only when `signal` aborts.
   */
  read(record: LogRecord, signal: AbortSignal): Reading | Promise<Reading>;
}

export interface PartitionReaderOptions {
  readonly partition: number;
  readonly start: number;
  readonly settings: TopicSettings;
  /** State of the partition's symbols just before `start`. */
  readonly symbols: Map<string, SymbolState>;
  /** Whether `conflict` is wanted; it costs memory. */
  readonly compareContent: boolean;
  readonly schemas: SchemaClient;
  readonly log: Log;
}

export function createPartitionReader(options: PartitionReaderOptions): PartitionReader {
  const { start, schemas, log } = options;
  const decoder = createDecoder('pill', schemas.writerSchemas);
  const judge = createPartitionJudge(options);

  const weigh = (record: LogRecord, decoded: Decoded<PillRecord>): Reading => {
    const { offset, key, appendedAt } = record;
    if (offset < start) {
      if (!decoded.ok) return { kind: 'warmed', live: undefined };
      judge.warmUp(decoded.value, key, offset, appendedAt);
      return { kind: 'warmed', live: arrivalOf(decoded.value, appendedAt, options.settings) };
    }
    if (!decoded.ok) return { kind: 'rejected', code: decoded.code, reason: decoded.reason };
    const verdict = judge.judge(decoded.value, key, offset, appendedAt);
    return verdict.kind === 'repeat' ? { ...verdict, pill: decoded.value } : verdict;
  };
  return {
    start,
    read(record, signal) {
      const decoded = decodeWith(decoder, schemas, record.value, { signal, log });
      return decoded instanceof Promise
        ? decoded.then((value) => weigh(record, value))
        : weigh(record, decoded);
    },
  };
}

function arrivalOf(
  pill: PillRecord,
  appendedAt: Micros,
  { backfill_age_ms }: TopicSettings,
): Arrival | undefined {
  const { received: receivedAt } = timesOf(pill, appendedAt);
  const { symbol, timestamp } = pill;
  return isBackfill(timestamp, receivedAt, backfill_age_ms) ? undefined : { symbol, receivedAt };
}

/** Where to begin to read a partition whose records have effect from `start` on. */
export function warmUpFrom(start: number, low: number, { repeat_window }: TopicSettings): number {
  return Math.max(low, start - repeat_window);
}
