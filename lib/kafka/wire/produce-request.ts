import { WireReader, WireWriter } from './bytes.ts';
import type { WireRequest } from './cluster.ts';
import { encodeRecordBatch, type WireRecord } from './record-batch.ts';

// Produce, version 7: kafka.apache.org/protocol#The_Messages_Produce

export const PRODUCE = { name: 'Produce', key: 0, version: 7 } as const;
/** All replicas in sync acknowledge. */
const ACKS_ALL = -1;

/** Records by topic and partition. */
export type RecordsByPartition = ReadonlyMap<string, ReadonlyMap<number, readonly WireRecord[]>>;

export interface ProducedPartition {
  readonly topic: string;
  readonly partition: number;
  readonly errorCode: number;
  /** Offset of the partition's first record. */
  readonly baseOffset: number;
  /** Milliseconds; -1 where the topic keeps the producer's time. */
  readonly appendTimeMs: number;
}

/** A request with one batch for each partition. @param timeoutMs the broker's wait for replicas */
export function produceRequest(
  topics: RecordsByPartition,
  timeoutMs: number,
): WireRequest<readonly ProducedPartition[]> {
  return {
    ...PRODUCE,
    encode() {
      const timeMs = Date.now();
      const writer = new WireWriter(16 * 1024);
      writer.string(null);
      writer.int16(ACKS_ALL);
      writer.int32(timeoutMs);
      writer.int32(topics.size);
      for (const [topic, partitions] of topics) {
        writer.string(topic);
        writer.int32(partitions.size);
        for (const [partition, records] of partitions) {
          writer.int32(partition);
          const lengthAt = writer.length;
          writer.int32(0);
          encodeRecordBatch(writer, records, timeMs);
          writer.setInt32(lengthAt, writer.length - lengthAt - 4);
        }
      }
      return writer.view();
    },
    decode(payload) {
      const reader = new WireReader(payload);
      const answers = reader.array(() => {
        const topic = reader.string();
        return reader.array(() => {
          const partition = reader.int32();
          const errorCode = reader.int16();
          const baseOffset = reader.int64();
          const appendTimeMs = reader.int64();
          reader.int64(); // The log's first offset.
          return { topic, partition, errorCode, baseOffset, appendTimeMs };
        });
      });
      return { data: answers.flat(), throttleMs: reader.int32() };
    },
  };
}
