/**
 * Writes the primitive types of Kafka's protocol, big endian, into one growing buffer
 * (kafka.apache.org/protocol, "Protocol Primitive Types").
 */
export class WireWriter {
  #buffer: Buffer;
  #at = 0;

  /** @param capacity bytes reserved at once; the buffer grows beyond */
  constructor(capacity = 512) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#at;
  }

  int8(value: number): void {
    this.#need(1);
    this.#buffer.writeInt8(value, this.#at);
    this.#at += 1;
  }

  int16(value: number): void {
    this.#need(2);
    this.#buffer.writeInt16BE(value, this.#at);
    this.#at += 2;
  }

  int32(value: number): void {
    this.#need(4);
    this.#buffer.writeInt32BE(value, this.#at);
    this.#at += 4;
  }

  /** A safe integer: two halves take a tenth of the time of a BigInt. */
  int64(value: number): void {
    this.#need(8);
    this.#buffer.writeInt32BE(Math.floor(value / 2 ** 32), this.#at);
    this.#buffer.writeUInt32BE(value >>> 0, this.#at + 4);
    this.#at += 8;
  }

  /** A signed 32-bit integer in zigzag form, 1 to 5 bytes. */
  varint(value: number): void {
    this.#need(5);
    let rest = ((value << 1) ^ (value >> 31)) >>> 0;
    while (rest > 0x7f) {
      this.#buffer[this.#at] = (rest & 0x7f) | 0x80;
      this.#at += 1;
      rest >>>= 7;
    }
    this.#buffer[this.#at] = rest;
    this.#at += 1;
  }

  /** STRING or NULLABLE_STRING: a length of 16 bits, -1 for null, and UTF-8. */
  string(text: string | null): void {
    const bytes = text === null ? -1 : Buffer.byteLength(text);
    this.int16(bytes);
    if (text !== null) this.utf8(text, bytes);
  }

  /** @param bytes the length of `text` in UTF-8 */
  utf8(text: string, bytes: number): void {
    this.#need(bytes);
    this.#buffer.write(text, this.#at, bytes, 'utf8');
    this.#at += bytes;
  }

  raw(bytes: Uint8Array): void {
    this.#need(bytes.length);
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Replaces four bytes that are written already, e.g. a length that was not known. */
  setInt32(at: number, value: number): void {
    this.#buffer.writeInt32BE(value, at);
  }

  /** The bytes from `from` on; a view, valid until the next write. */
  view(from = 0): Buffer {
    return this.#buffer.subarray(from, this.#at);
  }

  #need(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + bytes));
    this.#buffer.copy(grown, 0, 0, this.#at);
    this.#buffer = grown;
  }
}

/** Bytes of `WireWriter.varint`. */
export function varintBytes(value: number): number {
  const zigzag = ((value << 1) ^ (value >> 31)) >>> 0;
  if (zigzag < 0x80) return 1;
  return Math.ceil((32 - Math.clz32(zigzag)) / 7);
}

/** Reads what `WireWriter` writes. @throws RangeError beyond the end */
export class WireReader {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  int8(): number {
    return this.bytes.readInt8(this.#take(1));
  }

  int16(): number {
    return this.bytes.readInt16BE(this.#take(2));
  }

  int32(): number {
    return this.bytes.readInt32BE(this.#take(4));
  }

  /** Exact up to 2^53; offsets and times are far below. */
  int64(): number {
    const at = this.#take(8);
    return this.bytes.readInt32BE(at) * 2 ** 32 + this.bytes.readUInt32BE(at + 4);
  }

  /** A zigzag integer of up to 64 bits, exact up to 2^52. */
  varint(): number {
    const first = this.bytes[this.at];
    if (first !== undefined && first < 0x80) {
      this.at += 1;
      return (first >>> 1) ^ -(first & 1);
    }
    let zigzag = 0;
    let factor = 1;
    for (let n = 0; n < 10; n += 1) {
      const byte = this.bytes[this.#take(1)]!;
      zigzag += (byte & 0x7f) * factor;
      factor *= 128;
      if (byte < 0x80) return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    }
    throw new RangeError('A variable-length integer has more than ten bytes.');
  }

  string(): string {
    const length = this.int16();
    if (length < 0) return '';
    const at = this.#take(length);
    return this.bytes.toString('utf8', at, at + length);
  }

  /** A view of the next bytes; null for a negative length. */
  view(length: number): Buffer | null {
    if (length < 0) return null;
    const at = this.#take(length);
    return this.bytes.subarray(at, at + length);
  }

  /** Reads an array with a length of 32 bits; null is an empty one. */
  array<T>(read: (reader: WireReader) => T): T[] {
    const length = this.int32();
    // Each element has at least one byte: a length beyond the rest is not worth the memory.
    if (length > this.left) throw new RangeError(`An array of ${length} elements is not whole.`);
    const list: T[] = [];
    for (let n = 0; n < length; n += 1) list.push(read(this));
    return list;
  }

  #take(bytes: number): number {
    const { at } = this;
    if (at + bytes > this.bytes.length) throw new RangeError('The bytes end too early.');
    this.at = at + bytes;
    return at;
  }
}
