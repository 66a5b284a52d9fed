import type { Parts } from './parts.ts';

/** A message begins with this mark and the length of its metadata; length 0 ends a stream. */
const CONTINUATION = 0xffffffff;
const PREFIX_BYTES = 8;

/**
 * Joins Arrow IPC streams of one schema to one stream: the schema of the first, then the dictionaries
 * and record batches of all. A later dictionary replaces an earlier one, as the format allows for
 * streams.
 */
export function createArrowParts(): Parts {
  let schema: Buffer | undefined;
  return {
    add(slice) {
      const end = slice.length - PREFIX_BYTES;
      const isEnded =
        end >= 0 && slice.readUInt32LE(end) === CONTINUATION && slice.readUInt32LE(end + 4) === 0;
      if (slice.readUInt32LE(0) !== CONTINUATION || !isEnded) {
        throw new Error('ClickHouse wrote an Arrow stream without a begin or an end.');
      }
      const batchesAt = PREFIX_BYTES + slice.readUInt32LE(4); // a schema has no body
      const own = slice.subarray(0, batchesAt);
      if (schema === undefined) {
        schema = Buffer.from(own);
        return slice.subarray(0, end);
      }
      if (!own.equals(schema)) throw new Error('The Arrow schemas of two slices differ.');
      return slice.subarray(batchesAt, end);
    },
    end() {
      const mark = Buffer.alloc(PREFIX_BYTES);
      mark.writeUInt32LE(CONTINUATION, 0);
      return mark;
    },
  };
}
