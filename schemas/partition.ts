const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/**
 * murmur2 as in Kafka's Java client (org.apache.kafka.common.utils.Utils.murmur2).
 * @returns a signed 32-bit hash of the bytes
 */
export function murmur2(data: Uint8Array): number {
  const length = data.length;
  const view = new DataView(data.buffer, data.byteOffset, length);
  let h = SEED ^ length;
  const end = length & ~3;
  for (let i = 0; i < end; i += 4) {
    let k = Math.imul(view.getInt32(i, true), M);
    k = Math.imul(k ^ (k >>> R), M);
    h = Math.imul(h, M) ^ k;
  }
  const rest = length & 3;
  if (rest === 3) h ^= data[end + 2]! << 16;
  if (rest >= 2) h ^= data[end + 1]! << 8;
  if (rest >= 1) h = Math.imul(h ^ data[end]!, M);
  h = Math.imul(h ^ (h >>> 13), M);
  return h ^ (h >>> 15);
}

/** Partition of a symbol: toPositive(murmur2(UTF-8)) mod count, as in Java and kafkajs. */
export function partitionOf(symbol: string, partitions: number): number {
  return (murmur2(Buffer.from(symbol, 'utf8')) & 0x7fffffff) % partitions;
}

/** Bound of a partitioner's cache; at the bound, the cache is cleared. */
const REMEMBERED_MAX = 100_000;

/** As `partitionOf`, with a cache: the hot path asks for few symbols, often. */
export function createPartitioner(partitions: number) {
  const known = new Map<string, number>();
  return (symbol: string): number => {
    let partition = known.get(symbol);
    if (partition === undefined) {
      partition = partitionOf(symbol, partitions);
      if (known.size >= REMEMBERED_MAX) known.clear();
      known.set(symbol, partition);
    }
    return partition;
  };
}
