import type avro from 'avsc';

/** Marker of Avro's single-object encoding; then the fingerprint, 8 bytes little-endian. */
const MARKER = Buffer.from([0xc3, 0x01]);
/** Polynomial and start value of CRC-64-AVRO: Avro specification 1.12, "Schema Fingerprints". */
const EMPTY = 0xc15d213aa4d7a795n;

/**
 * CRC-64-AVRO of bytes; a schema's fingerprint is the fingerprint of its canonical form in UTF-8.
 */
export function crc64Avro(bytes: Uint8Array): bigint {
  let crc = EMPTY;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >> 1n) ^ (crc & 1n ? EMPTY : 0n);
  }
  return crc;
}

/** Header of each value of a type in the single-object encoding: 10 bytes. */
export function singleObjectHeader(type: avro.Type): Buffer {
  const fingerprint = Buffer.alloc(8);
  fingerprint.writeBigUInt64LE(crc64Avro(Buffer.from(canonicalForm(type))));
  return Buffer.concat([MARKER, fingerprint]);
}

/** The parsing canonical form of a type: names in full, no docs, no logical types. */
function canonicalForm(type: avro.Type): string {
  return JSON.stringify(type.schema());
}
