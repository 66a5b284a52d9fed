import crc32c from 'crc-32/crc32c.js';
import type { LogRecord } from '../log-record.ts';
import { varintBytes, WireReader, type WireWriter } from './bytes.ts';
import { decompress } from './decompress.ts';

// Record batches of version 2: kafka.apache.org/documentation/#recordbatch

/** A record to be written. */
export interface WireRecord {
  readonly key: string;
  readonly value: Buffer;
}

/** A transaction that was aborted: its records from `firstOffset` up to its marker do not count. */
export interface AbortedTransaction {
  readonly producerId: number;
  readonly firstOffset: number;
}

/**
 * A batch that is damaged, or that this code cannot read. The position stays before it, since a
 * batch that is skipped would be a loss.
 */
export class BatchFaultError extends Error {
  override readonly name = 'BatchFaultError';
}

/** Bytes before the part that a batch's length counts: offset and length. */
const PREFIX_BYTES = 12;
const MAGIC_AT = 16;
const CRC_AT = 17;
/** The checksum covers the bytes from the attributes on. */
const ATTRIBUTES_AT = 21;
const RECORDS_AT = 61;
const LENGTH_MIN = RECORDS_AT - PREFIX_BYTES;

const COMPRESSION = 0b111;
const APPEND_TIME = 0b1000;
const TRANSACTIONAL = 0b1_0000;
const CONTROL = 0b10_0000;
/** Type of a control record's key: the end of a transaction that was aborted. */
const ABORT_MARKER = 0;

/** Writes one batch, uncompressed, without a producer's id. @param timeMs its records' time */
export function encodeRecordBatch(
  writer: WireWriter,
  records: readonly WireRecord[],
  timeMs: number,
): void {
  const begin = writer.length;
  writer.int64(0); // The broker assigns the offset.
  writer.int32(0); // The length, below.
  writer.int32(-1); // The leader's epoch.
  writer.int8(2);
  writer.int32(0); // The checksum, below.
  writer.int16(0);
  writer.int32(records.length - 1);
  writer.int64(timeMs);
  writer.int64(timeMs);
  writer.int64(-1);
  writer.int16(-1);
  writer.int32(-1);
  writer.int32(records.length);
  for (const [index, { key, value }] of records.entries()) {
    const keyBytes = Buffer.byteLength(key);
    const lengths = varintBytes(keyBytes) + varintBytes(value.length);
    // Attributes, time delta and number of headers are one byte each.
    writer.varint(3 + varintBytes(index) + lengths + keyBytes + value.length);
    writer.int8(0);
    writer.varint(0);
    writer.varint(index);
    writer.varint(keyBytes);
    writer.utf8(key, keyBytes);
    writer.varint(value.length);
    writer.raw(value);
    writer.varint(0);
  }
  writer.setInt32(begin + 8, writer.length - begin - PREFIX_BYTES);
  writer.setInt32(begin + CRC_AT, crc32c.buf(writer.view(begin + ATTRIBUTES_AT)));
}

/**
 * Reads the batches of a fetched record set. A broker cuts the last batch at the requested size;
 * that part is left for the next fetch.
 * @param from the requested offset; earlier records of its batch are left out
 * @param aborted transactions that the broker names beside the record set
 * @returns the records with effect, and the offset after the last whole batch, holes and control
 *   records included
 * @throws BatchFaultError
 */
export function decodeRecordSet(
  bytes: Buffer,
  from: number,
  aborted: readonly AbortedTransaction[] = [],
): { readonly records: LogRecord[]; readonly nextOffset: number } {
  const records: LogRecord[] = [];
  const transactions = createTransactionFilter(aborted);
  let nextOffset = from;
  let at = 0;
  while (at + PREFIX_BYTES <= bytes.length) {
    const end = at + PREFIX_BYTES + bytes.readInt32BE(at + 8);
    if (end > bytes.length && at > 0) break;
    const batch = readHead(bytes, at, end);
    if (transactions.counts(batch)) readRecords(batch, from, records);
    nextOffset = Math.max(nextOffset, batch.lastOffset + 1);
    at = end;
  }
  if (at === 0 && bytes.length > 0) throw new BatchFaultError('The first batch is truncated.');
  return { records, nextOffset };
}

interface Head {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly attributes: number;
  readonly baseTimeMs: number;
  readonly maxTimeMs: number;
  readonly producerId: number;
  readonly count: number;
  /** The records' bytes, maybe compressed. */
  readonly body: Buffer;
}

function readHead(bytes: Buffer, begin: number, end: number): Head {
  const reader = new WireReader(bytes, begin);
  const baseOffset = reader.left >= 8 ? reader.int64() : -1;
  const refuse = (what: string) => {
    throw new BatchFaultError(`The batch at offset ${baseOffset} ${what}.`);
  };
  if (end > bytes.length || end - begin < PREFIX_BYTES + LENGTH_MIN) {
    // An old format may be shorter than the head of this one.
    const magic = bytes[begin + MAGIC_AT];
    if (magic === 0 || magic === 1) refuse(`has format ${magic}; only format 2 is read`);
    refuse('is truncated');
  }
  const magic = bytes[begin + MAGIC_AT]!;
  if (magic !== 2) refuse(`has format ${magic}; only format 2 is read`);
  const checksum = crc32c.buf(bytes.subarray(begin + ATTRIBUTES_AT, end));
  if (checksum !== bytes.readInt32BE(begin + CRC_AT)) refuse('does not match its checksum');
  reader.at = begin + ATTRIBUTES_AT;
  const attributes = reader.int16();
  const lastOffset = baseOffset + reader.int32();
  const baseTimeMs = reader.int64();
  const maxTimeMs = reader.int64();
  const producerId = reader.int64();
  reader.at += 6; // The producer's epoch and sequence.
  const count = reader.int32();
  const body = bytes.subarray(begin + RECORDS_AT, end);
  return { baseOffset, lastOffset, attributes, baseTimeMs, maxTimeMs, producerId, count, body };
}

function readRecords(batch: Head, from: number, into: LogRecord[]): void {
  const { attributes, baseOffset, count } = batch;
  const appended = (attributes & APPEND_TIME) === 0 ? undefined : batch.maxTimeMs * 1000;
  try {
    const reader = new WireReader(decompress(attributes & COMPRESSION, batch.body));
    for (let n = 0; n < count; n += 1) {
      const length = reader.varint();
      const end = reader.at + length;
      reader.at += 1; // Attributes, unused.
      const timeMs = batch.baseTimeMs + reader.varint();
      const offset = baseOffset + reader.varint();
      const key = reader.view(reader.varint());
      const value = reader.view(reader.varint());
      if (reader.at > end || end > reader.bytes.length) throw new RangeError('A record is longer.');
      reader.at = end; // Headers are not used.
      if (offset >= from) into.push({ offset, key, value, appendedAt: appended ?? timeMs * 1000 });
    }
  } catch (cause) {
    const { message } = cause as Error;
    throw new BatchFaultError(`The batch at offset ${baseOffset} is damaged: ${message}`, {
      cause,
    });
  }
}

/**
 * Tells which batches count for a reader of committed records, like the Java client's: between an
 * aborted transaction's first offset and its marker, its producer's batches do not.
 */
function createTransactionFilter(aborted: readonly AbortedTransaction[]) {
  const waiting = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<number>();
  return {
    counts({ attributes, lastOffset, producerId, body }: Head): boolean {
      while (waiting.length > 0 && waiting[0]!.firstOffset <= lastOffset) {
        open.add(waiting.shift()!.producerId);
      }
      if ((attributes & CONTROL) !== 0) {
        if (isAbortMarker(body)) open.delete(producerId);
        return false;
      }
      return (attributes & TRANSACTIONAL) === 0 || !open.has(producerId);
    },
  };
}

/** The key of a control record: a version and a type, of 16 bits each. */
function isAbortMarker(body: Buffer): boolean {
  const reader = new WireReader(body);
  reader.varint();
  reader.at += 1;
  reader.varint();
  reader.varint();
  const key = reader.view(reader.varint());
  return key !== null && key.length >= 4 && key.readInt16BE(2) === ABORT_MARKER;
}
