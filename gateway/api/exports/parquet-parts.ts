import type { Parts } from './parts.ts';
import { listHead, readThrift, type ThriftList, type ThriftStruct, writeThrift } from './thrift.ts';

const MAGIC = Buffer.from('PAR1');
/** The length of the metadata and the magic bytes end a file. */
const TAIL_BYTES = 8;
const STRUCT = 12;
/** Fields of parquet.thrift. */
const FILE = { numRows: 3, rowGroups: 4 } as const;
const ROW_GROUP = { columns: 1, numRows: 3, fileOffset: 5, ordinal: 7 } as const;
const CHUNK = { fileOffset: 2, metadata: 3 } as const;
const METADATA_OFFSETS = [9, 10, 11] as const; // data, index and dictionary page

/**
 * Joins Parquet files of one schema to one file: the row groups of all, which stay as ClickHouse
 * wrote them, and metadata with their new places. Only the metadata is in memory, some 1.5 kB for
 * each row group.
 */
export function createParquetParts(): Parts {
  let file: ThriftStruct | undefined;
  let schema: Buffer | undefined;
  const groups: Buffer[] = [];
  let rows = 0n;
  let length = MAGIC.length;
  return {
    add(slice) {
      const metadataAt = slice.length - TAIL_BYTES - slice.readUInt32LE(slice.length - TAIL_BYTES);
      const own = readThrift(slice.subarray(metadataAt, slice.length - TAIL_BYTES));
      const ownSchema = writeThrift(own.get(2)!.value, 9);
      schema ??= ownSchema;
      if (!ownSchema.equals(schema)) throw new Error('The Parquet schemas of two slices differ.');
      const isFirst = file === undefined;
      file ??= own;
      rows += own.get(FILE.numRows)!.value as bigint;
      const shift = BigInt(length - MAGIC.length);
      for (const group of (own.get(FILE.rowGroups)!.value as ThriftList).items) {
        moveGroup(group as ThriftStruct, shift, BigInt(groups.length));
        groups.push(writeThrift(group));
      }
      const data = slice.subarray(MAGIC.length, metadataAt);
      length += data.length;
      return isFirst ? slice.subarray(0, metadataAt) : data;
    },
    end() {
      if (file === undefined) throw new Error('A Parquet file has one slice at least.');
      const parts: Buffer[] = [];
      const before: ThriftStruct = new Map();
      const after: ThriftStruct = new Map();
      for (const [id, field] of file) (id < FILE.rowGroups ? before : after).set(id, field);
      before.get(FILE.numRows)!.value = rows;
      // Without the mark at its end; the list of row groups is the next field, and the first of
      // the others continues from its id.
      parts.push(writeThrift(before).subarray(0, -1));
      after.delete(FILE.rowGroups);
      parts.push(
        Buffer.of(((FILE.rowGroups - FILE.numRows) << 4) | 9),
        listHead(STRUCT, groups.length),
        ...groups,
      );
      const rest = writeThrift(new Map([[FILE.rowGroups, { type: 5, value: 0n }], ...after]));
      parts.push(rest.subarray(2)); // without that first field
      const metadata = Buffer.concat(parts);
      const tail = Buffer.alloc(4);
      tail.writeUInt32LE(metadata.length);
      return Buffer.concat([metadata, tail, MAGIC]);
    },
  };
}

/** Adds `shift` to every place in the file. */
function moveGroup(group: ThriftStruct, shift: bigint, ordinal: bigint): void {
  move(group, ROW_GROUP.fileOffset, shift);
  const number = group.get(ROW_GROUP.ordinal);
  // 16 bits, optional: a file may have more row groups.
  if (number !== undefined && ordinal < 32_768n) number.value = ordinal;
  else group.delete(ROW_GROUP.ordinal);
  for (const column of (group.get(ROW_GROUP.columns)!.value as ThriftList).items) {
    const chunk = column as ThriftStruct;
    move(chunk, CHUNK.fileOffset, shift);
    const metadata = chunk.get(CHUNK.metadata)!.value as ThriftStruct;
    for (const field of METADATA_OFFSETS) move(metadata, field, shift);
  }
}

function move(struct: ThriftStruct, field: number, shift: bigint): void {
  const place = struct.get(field);
  if (place !== undefined) place.value = (place.value as bigint) + shift;
}
