import { randomInt } from 'node:crypto';

export type RowIndex = ReturnType<typeof createRowIndex>;

/** No row. */
export const NO_ROW = -1;

/**
 * Creates an index from hashes to rows, in typed arrays. Rows with one hash are chained, newest
 * first; the caller compares what they hold.
 */
export function createRowIndex(rows: number) {
  const buckets = new Int32Array(2 ** Math.ceil(Math.log2(Math.max(rows, 2)))).fill(NO_ROW);
  const mask = buckets.length - 1;
  const next = new Int32Array(rows).fill(NO_ROW);
  return {
    /** The newest row that may have this hash, or `NO_ROW`. */
    first: (hash: number): number => buckets[hash & mask]!,
    next: (row: number): number => next[row]!,
    add(hash: number, row: number): void {
      next[row] = buckets[hash & mask]!;
      buckets[hash & mask] = row;
    },
    /** Removes a row that was added with this hash. */
    remove(hash: number, row: number): void {
      let at = buckets[hash & mask]!;
      if (at === row) {
        buckets[hash & mask] = next[row]!;
        return;
      }
      while (at !== NO_ROW && next[at] !== row) at = next[at]!;
      if (at !== NO_ROW) next[at] = next[row]!;
    },
  };
}

// Drawn at random, so that no sender can choose texts whose hashes are equal.
const START = randomInt(2 ** 31);
const FACTOR = (randomInt(2 ** 28) << 3) | 5;

/** Hash of a text, 32 bits, the same only within this process. @param start hash of a text before */
export function hashText(text: string, start = START): number {
  let hash = start;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), FACTOR);
    hash ^= hash >>> 15;
  }
  return hash;
}
