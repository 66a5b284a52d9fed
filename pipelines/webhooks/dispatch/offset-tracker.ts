/**
 * How far a partition is settled: every pill up to there is delivered, stored, or unwanted.
 * @param start offset of the first record that is read
 */
export function createOffsetTracker(start: number) {
  /** Messages to settle by offset, in the order of the log. */
  const open = new Map<number, number>();
  let scanned = start;
  let messagesOpen = 0;
  return {
    /** Adds the next record, with its number of messages to settle. Offsets rise. */
    open(offset: number, messages: number): void {
      if (messages > 0) open.set(offset, messages);
      messagesOpen += messages;
      scanned = Math.max(scanned, offset + 1);
    },
    /** One message of the pill at this offset is delivered or stored. */
    settle(offset: number): void {
      const left = open.get(offset);
      if (left === undefined) return;
      messagesOpen -= 1;
      if (left === 1) open.delete(offset);
      else open.set(offset, left - 1);
    },
    /** Records without messages were read up to here, excluded. */
    skipTo(nextOffset: number): void {
      scanned = Math.max(scanned, nextOffset);
    },
    /** Offset of the first record that is not settled. */
    nextOffset(): number {
      const [first] = open.keys();
      return first ?? scanned;
    },
    /** Messages that are not settled. */
    get size(): number {
      return messagesOpen;
    },
  };
}
