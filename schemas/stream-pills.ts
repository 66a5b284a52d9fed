import avro from 'avsc';
import { type StreamPill, typeOf } from './avro.ts';
import { singleObjectHeader } from './single-object.ts';

const frame = typeOf('stream-pills') as avro.types.RecordType;
const item = (frame.field('pills').type as avro.types.ArrayType).itemsType;
const long = avro.Type.forSchema('long');

/** Header of a binary frame of the stream: marker and fingerprint of stream-pills.avsc. */
export const STREAM_PILLS_HEADER = singleObjectHeader(frame);

/** Encodes one item of `pills`. */
export function encodeStreamPill(pill: StreamPill): Buffer {
  return item.toBuffer(pill);
}

/** Encodes an Avro long, or int. */
export function encodeLong(value: number): Buffer {
  return long.toBuffer(value);
}
