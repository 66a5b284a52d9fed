import avro from 'avsc';
import { type StreamPill, typeOf } from '../../schemas/avro.ts';
import { singleObjectHeader } from '../../schemas/single-object.ts';
import type { Codec } from './codec.ts';

const pills = typeOf('stream-pills') as avro.types.RecordType;
const pill = (pills.field('pills').type as avro.types.ArrayType).itemsType;
const HEADER = singleObjectHeader(pills);
const LONG = avro.Type.forSchema('long');
/** Ends an array: a block of no items. */
const END = Buffer.from([0]);
/** The last two fields, `replayed` and `skipped`, when unset: one byte each. */
const UNSET = 2;
const TRUE = Buffer.from([1]);
const FALSE = Buffer.from([0]);

/**
 * Binary frames in Avro's single-object encoding of stream-pills.avsc. The flags that are known
 * only for one connection are the last fields of a pill, so that a body is changed at its end.
 */
export const AVRO_CODEC: Codec = {
  name: 'avro',
  encode({ source, kind, order, prev, last, ...fields }, prevOffset) {
    const value: StreamPill = { ...fields, prev_offset: prevOffset, replayed: false, skipped: 0 };
    return pill.toBuffer(value);
  },
  withSkipped(body, skipped) {
    return Buffer.concat([body.subarray(0, -UNSET), FALSE, LONG.toBuffer(skipped)]);
  },
  withReplayed: (body) => Buffer.concat([body.subarray(0, -UNSET), TRUE, FALSE]),
  frame(bodies, sentAt) {
    // One block: the count of items, then the items.
    const parts: Buffer[] = [HEADER, LONG.toBuffer(sentAt), LONG.toBuffer(bodies.length)];
    for (const { body } of bodies) parts.push(body);
    parts.push(END);
    return Buffer.concat(parts);
  },
};
