import { WireReader, WireWriter } from './bytes.ts';
import type { WireRequest } from './cluster.ts';
import type { AbortedTransaction } from './record-batch.ts';

// Fetch, version 11: kafka.apache.org/protocol#The_Messages_Fetch

export const FETCH = { name: 'Fetch', key: 1, version: 11 } as const;
const READ_COMMITTED = 1;
const NO_LEADER_EPOCH = -1;
const CONSUMER = -1;

export interface FetchBounds {
  /** The broker answers when this many bytes are available, … */
  readonly minBytes: number;
  /** … and after this time in any case. */
  readonly waitMs: number;
  readonly bytesMax: number;
  readonly partitionBytesMax: number;
}

export interface FetchedPartition {
  readonly partition: number;
  readonly errorCode: number;
  readonly aborted: readonly AbortedTransaction[];
  readonly recordSet: Buffer;
}

export interface FetchAnswer {
  readonly errorCode: number;
  /** 0 if the broker keeps no session for this reader. */
  readonly sessionId: number;
  /** Of a session: only partitions that have something to tell. */
  readonly partitions: readonly FetchedPartition[];
}

/** @param offsets the wanted offset by partition; in a session, only those that have changed */
export function fetchRequest(options: {
  readonly topic: string;
  readonly offsets: ReadonlyMap<number, number>;
  readonly bounds: FetchBounds;
  readonly session: { readonly id: number; readonly epoch: number };
}): WireRequest<FetchAnswer> {
  const { topic, offsets, bounds, session } = options;
  return {
    ...FETCH,
    encode() {
      const writer = new WireWriter(128 + 32 * offsets.size);
      writer.int32(CONSUMER);
      writer.int32(bounds.waitMs);
      writer.int32(bounds.minBytes);
      writer.int32(bounds.bytesMax);
      writer.int8(READ_COMMITTED);
      writer.int32(session.id);
      writer.int32(session.epoch);
      writer.int32(offsets.size === 0 ? 0 : 1);
      if (offsets.size > 0) {
        writer.string(topic);
        writer.int32(offsets.size);
        for (const [partition, offset] of offsets) {
          writer.int32(partition);
          writer.int32(NO_LEADER_EPOCH);
          writer.int64(offset);
          writer.int64(-1); // The log's first offset is a follower's matter.
          writer.int32(bounds.partitionBytesMax);
        }
      }
      writer.int32(0); // No partition leaves the session.
      writer.string(''); // No rack.
      return writer.view();
    },
    decode(payload) {
      const reader = new WireReader(payload);
      const throttleMs = reader.int32();
      const errorCode = reader.int16();
      const sessionId = reader.int32();
      const topics = reader.array(() => {
        reader.string();
        return reader.array(readPartition);
      });
      return { data: { errorCode, sessionId, partitions: topics.flat() }, throttleMs };
    },
  };
}

function readPartition(reader: WireReader): FetchedPartition {
  const partition = reader.int32();
  const errorCode = reader.int16();
  reader.at += 24; // High watermark, last stable offset and first offset.
  const aborted = reader.array(() => ({
    producerId: reader.int64(),
    firstOffset: reader.int64(),
  }));
  reader.int32(); // A replica to read from; this reader names no rack.
  const recordSet = reader.view(reader.int32()) ?? Buffer.alloc(0);
  return { partition, errorCode, aborted, recordSet };
}
