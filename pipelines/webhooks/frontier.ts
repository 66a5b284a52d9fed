/** How far a partition is settled: every pill up to there is delivered, kept, or nobody's. */
export interface Frontier {
  /** The next record was read; it has so many messages to settle. Offsets rise. */
  opened(offset: number, messages: number): void;
  /** One message of the pill at this offset is delivered or kept. */
  settled(offset: number): void;
  /** Records without messages were read up to here, excluded. */
  passed(nextOffset: number): void;
  /** Offset of the first record that is not settled. */
  next(): number;
  /** Messages that are not settled. */
  readonly size: number;
}

/** @param start offset of the first record that is read */
export function createFrontier(start: number): Frontier {
  /** Messages to settle by offset, in the order of the log. */
  const open = new Map<number, number>();
  let scanned = start;
  let messagesOpen = 0;
  return {
    opened(offset, messages) {
      if (messages > 0) open.set(offset, messages);
      messagesOpen += messages;
      scanned = Math.max(scanned, offset + 1);
    },
    settled(offset) {
      const left = open.get(offset);
      if (left === undefined) return;
      messagesOpen -= 1;
      if (left === 1) open.delete(offset);
      else open.set(offset, left - 1);
    },
    passed(nextOffset) {
      scanned = Math.max(scanned, nextOffset);
    },
    next() {
      const [first] = open.keys();
      return first ?? scanned;
    },
    get size() {
      return messagesOpen;
    },
  };
}
