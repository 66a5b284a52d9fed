/** Types of Thrift's compact protocol, in which Parquet writes its metadata. */
const BOOL_TRUE = 1;
const BOOL_FALSE = 2;
const BYTE = 3;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

/** A value: integers as bigint, doubles and single bytes as their bytes. */
export type ThriftValue = boolean | bigint | Buffer | ThriftList | ThriftStruct;
export interface ThriftList {
  readonly of: number;
  readonly items: ThriftValue[];
}
/** Fields by id, in order. */
export type ThriftStruct = Map<number, { readonly type: number; value: ThriftValue }>;

/** Reads a struct at the beginning of some bytes. */
export function readThrift(bytes: Buffer): ThriftStruct {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const integer = () => {
    const value = varint();
    return (value >> 1n) ^ -(value & 1n);
  };
  const take = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const read = (type: number): ThriftValue => {
    if (type === BOOL_TRUE || type === BOOL_FALSE) return type === BOOL_TRUE;
    if (type === BYTE) return take(1);
    if (type < DOUBLE) return integer();
    if (type === DOUBLE) return take(8);
    if (type === BINARY) return take(Number(varint()));
    if (type === LIST) return list();
    if (type === STRUCT) return struct();
    throw new Error(`Thrift type ${type} is not expected in Parquet metadata.`);
  };
  const list = (): ThriftList => {
    const head = bytes[at++]!;
    const length = head >> 4 === 15 ? Number(varint()) : head >> 4;
    const of = head & 15;
    const item = () => (of <= BOOL_FALSE ? bytes[at++] === BOOL_TRUE : read(of));
    return { of, items: Array.from({ length }, item) };
  };
  const struct = (): ThriftStruct => {
    const fields: ThriftStruct = new Map();
    for (let id = 0; ; ) {
      const head = bytes[at++]!;
      if (head === 0) return fields;
      id = head >> 4 === 0 ? Number(integer()) : id + (head >> 4);
      const type = head & 15;
      fields.set(id, { type, value: read(type) });
    }
  };
  return struct();
}

/** Writes a value. @param type of a field or an item */
export function writeThrift(value: ThriftValue, type = STRUCT): Buffer {
  if (Buffer.isBuffer(value)) {
    return type === BINARY ? Buffer.concat([varintBytes(BigInt(value.length)), value]) : value;
  }
  if (typeof value === 'bigint') return integerBytes(value);
  if (typeof value === 'boolean') return Buffer.of(value ? BOOL_TRUE : BOOL_FALSE);
  if (value instanceof Map) return structBytes(value);
  const { of, items } = value;
  return Buffer.concat([listHead(of, items.length), ...items.map((item) => writeThrift(item, of))]);
}

/** The beginning of a list whose items follow. */
export function listHead(of: number, length: number): Buffer {
  if (length < 15) return Buffer.of((length << 4) | of);
  return Buffer.concat([Buffer.of(0xf0 | of), varintBytes(BigInt(length))]);
}

function structBytes(fields: ThriftStruct): Buffer {
  const parts: Buffer[] = [];
  let last = 0;
  for (const [id, { type, value }] of fields) {
    const isBool = typeof value === 'boolean';
    const written = isBool ? (value ? BOOL_TRUE : BOOL_FALSE) : type;
    const step = id - last;
    if (step > 0 && step < 16) parts.push(Buffer.of((step << 4) | written));
    else parts.push(Buffer.of(written), integerBytes(BigInt(id)));
    if (!isBool) parts.push(writeThrift(value, type));
    last = id;
  }
  return Buffer.concat([...parts, Buffer.of(0)]);
}

function integerBytes(value: bigint): Buffer {
  return varintBytes(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)));
}

function varintBytes(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  bytes.push(Number(left));
  return Buffer.from(bytes);
}
