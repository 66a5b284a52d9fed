import { decodeWith } from '../../lib/kafka/decode.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import type { Log } from '../../lib/log/log.ts';
import {
  createDecoder,
  type Decoded,
  type DecodeFaultCode,
  type TopicSettings,
} from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { createPartitionJudge, type EffectivePill, type RejectCode } from './judge.ts';
import { isBackfill, timesOf } from './time.ts';

/** Outcome of reading one record of the pills topic. */
export type Reading =
  /** Before the start: only the repeat window was updated. `live` is set if the pill was live. */
  | { readonly kind: 'warmed'; readonly live: Arrival | undefined }
  | { readonly kind: 'effect'; readonly pill: EffectivePill }
  /** `pill` is the repeated one. */
  | { readonly kind: 'repeat'; readonly conflict: boolean; readonly pill: PillRecord }
  | {
      readonly kind: 'rejected';
      readonly code: RejectCode | DecodeFaultCode;
      readonly reason: string;
      /** The generator, as the record names it; null if it could not be decoded. */
      readonly source: string | null;
    };

/** Arrival of a symbol's pill, valid or not. */
export interface Arrival {
  readonly symbol: string;
  readonly receivedAt: Micros;
}

export type PartitionReader = ReturnType<typeof createPartitionReader>;

/** Reads one partition of the pills topic: decodes, then warms up or judges. */
export function createPartitionReader(
  options: Parameters<typeof createPartitionJudge>[0] & {
    readonly start: number;
    readonly schemas: SchemaClient;
    readonly log: Log;
  },
) {
  const { start, schemas, log } = options;
  const decoder = createDecoder('pill', schemas.writerSchemas);
  const judge = createPartitionJudge(options);

  const judgeOne = (record: LogRecord, decoded: Decoded<PillRecord>): Reading => {
    const { offset, key, appendedAt } = record;
    if (offset < start) {
      if (!decoded.ok) return { kind: 'warmed', live: undefined };
      judge.warmUp(decoded.value, key, offset, appendedAt);
      return { kind: 'warmed', live: arrivalOf(decoded.value, appendedAt, options.settings) };
    }
    if (!decoded.ok) {
      return { kind: 'rejected', code: decoded.code, reason: decoded.reason, source: null };
    }
    const verdict = judge.judge(decoded.value, key, offset, appendedAt);
    if (verdict.kind === 'repeat') return { ...verdict, pill: decoded.value };
    return verdict.kind === 'rejected' ? { ...verdict, source: decoded.value.source } : verdict;
  };
  return {
    /** First offset with effect for this reader. */
    start,
    /**
     * Reads the next record; a promise only while its schema is being loaded.
     * @throws only when `signal` aborts.
     */
    read(record: LogRecord, signal: AbortSignal): Reading | Promise<Reading> {
      const decoded = decodeWith(decoder, schemas, record.value, { signal, log });
      return decoded instanceof Promise
        ? decoded.then((value) => judgeOne(record, value))
        : judgeOne(record, decoded);
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

/** First offset to read of a partition whose records have effect from `start` on. */
export function warmUpFrom(start: number, low: number, { repeat_window }: TopicSettings): number {
  return Math.max(low, start - repeat_window);
}
