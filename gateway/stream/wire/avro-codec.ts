import type { StreamPill } from '../../../schemas/avro.ts';
import {
  encodeLong,
  encodeStreamPill,
  STREAM_PILLS_HEADER,
} from '../../../schemas/stream-pills.ts';
import type { Codec } from './codec.ts';

/** The end of an array: an empty block. */
const END = Buffer.from([0]);
/** Length of the last two fields, `replayed` and `skipped`, when unset: one byte each. */
const UNSET = 2;
const TRUE = Buffer.from([1]);
const FALSE = Buffer.from([0]);

/**
 * Binary frames in the Avro single-object encoding of stream-pills.avsc. The flags that differ
 * between connections are the last fields of a pill, so that only the end of a body changes.
 */
export const AVRO_CODEC: Codec = {
  name: 'avro',
  encode({ source, kind, order, prev, last, ...fields }, prevOffset) {
    const value: StreamPill = { ...fields, prev_offset: prevOffset, replayed: false, skipped: 0 };
    return encodeStreamPill(value);
  },
  withSkipped(body, skipped) {
    return Buffer.concat([body.subarray(0, -UNSET), FALSE, encodeLong(skipped)]);
  },
  withReplayed: (body) => Buffer.concat([body.subarray(0, -UNSET), TRUE, FALSE]),
  frame(bodies, sentAt) {
    // A single block: the number of items, then the items.
    const parts: Buffer[] = [STREAM_PILLS_HEADER, encodeLong(sentAt), encodeLong(bodies.length)];
    for (const { body } of bodies) parts.push(body);
    parts.push(END);
    return Buffer.concat(parts);
  },
};
