export type RowQueue = ReturnType<typeof createRowQueue>;

const FIRST_SLOTS = 64;

/** Creates a queue of row numbers, which also takes rows before its first one. */
export function createRowQueue() {
  // A power of two, so that positions wrap by a mask.
  let slots = new Int32Array(FIRST_SLOTS);
  let head = 0;
  let length = 0;
  const at = (index: number) => slots[(head + index) & (slots.length - 1)]!;
  const reserve = (more: number) => {
    if (length + more <= slots.length) return;
    const grown = new Int32Array(2 ** Math.ceil(Math.log2(length + more)));
    for (let index = 0; index < length; index += 1) grown[index] = at(index);
    slots = grown;
    head = 0;
  };
  return {
    get length() {
      return length;
    },
    /** The row at an index from 0 to `length` - 1, the oldest first. */
    at,
    push(row: number): void {
      reserve(1);
      slots[(head + length) & (slots.length - 1)] = row;
      length += 1;
    },
    /** Removes the oldest row of a queue that is not empty. */
    shift(): number {
      const row = at(0);
      head = (head + 1) & (slots.length - 1);
      length -= 1;
      return row;
    },
    /** Inserts a row before the oldest one. */
    unshift(row: number): void {
      reserve(1);
      head = (head - 1) & (slots.length - 1);
      slots[head] = row;
      length += 1;
    },
  };
}
