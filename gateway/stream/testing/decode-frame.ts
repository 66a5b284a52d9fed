import { type StreamPills, typeOf } from '../../../schemas/avro.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { singleObjectHeader } from '../../../schemas/single-object.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';

const type = typeOf('stream-pills');
const HEADER = singleObjectHeader(type);

/** Decodes a frame of either encoding to the JSON of the text encoding. @throws for any other */
export function decodeFrame(bytes: Buffer, isBinary: boolean): unknown {
  if (!isBinary) return JSON.parse(bytes.toString('utf8'));
  if (!bytes.subarray(0, HEADER.length).equals(HEADER)) throw new Error('not stream-pills');
  const { sent_at, pills } = type.fromBuffer(bytes.subarray(HEADER.length)) as StreamPills;
  const bodies = pills.map((pill) => {
    const { partition, offset, prev_offset, timestamp, received_at, ...rest } = pill;
    const { late, backfill, replayed, skipped, ...values } = rest;
    return {
      cursor: formatCursor(partition, offset),
      prev: prev_offset === null ? null : formatCursor(partition, prev_offset),
      ...values,
      timestamp: formatTimestamp(timestamp),
      received_at: formatTimestamp(received_at),
      ...(late ? { late } : {}),
      ...(backfill ? { backfill } : {}),
      ...(replayed ? { replayed } : {}),
      ...(skipped > 0 ? { skipped } : {}),
    };
  });
  const sentAt = formatTimestamp(sent_at);
  return bodies.length === 1
    ? { type: 'pill', ...bodies[0], sent_at: sentAt }
    : { type: 'pills', sent_at: sentAt, pills: bodies };
}
