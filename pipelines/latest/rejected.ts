import { createHash } from 'node:crypto';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import type { RejectedRecord } from '../../schemas/avro.ts';

/** Raw bytes kept of a rejected record. */
export const VALUE_BYTES_MAX = 64 * 1024;
export const KEY_BYTES_MAX = 1024;
const SOURCE_CHARS_MAX = 64;

/** Key of a rejected record: its place in the log, so that a record written twice counts once. */
export function rejectedKey(epoch: string, partition: number, offset: number): string {
  return `${epoch}:${partition}-${offset}`;
}

/** Describes a record without effect for `pills.rejected.v1`. */
export function describeRejected(
  origin: { readonly epoch: string; readonly partition: number },
  record: LogRecord,
  why: Pick<RejectedRecord, 'code' | 'reason' | 'source'>,
): RejectedRecord {
  const value = record.value ?? Buffer.alloc(0);
  return {
    ...origin,
    offset: record.offset,
    appended_at: record.appendedAt,
    code: why.code,
    reason: why.reason,
    key: record.key === null ? null : record.key.subarray(0, KEY_BYTES_MAX),
    value: record.value === null ? null : value.subarray(0, VALUE_BYTES_MAX),
    value_bytes: value.length,
    value_sha256: createHash('sha256').update(value).digest('hex'),
    source: why.source?.slice(0, SOURCE_CHARS_MAX) ?? null,
  };
}
