import { type Cursor, formatPosition, type Position, parsePosition } from './position.ts';

/** A position that only grows: what was true of what was handed over stays true. */
export interface Track {
  /** undefined as long as none is known. */
  position(): string | undefined;
  /** Everything up to the position was handed over. Of another epoch: it begins anew there. */
  raise(position: Position): void;
  /** Everything up to the cursor was, in its partition. Without a position it says nothing. */
  advance(cursor: Cursor): void;
  offsetOf(partition: number): number | undefined;
  readonly epoch: string | undefined;
}

/** @param start a position, as frames carry it */
export function createTrack(start?: string): Track {
  let epoch: string | undefined;
  let offsets = new Map<number, number>();
  const advance = ({ partition, offset }: Cursor) => {
    const known = offsets.get(partition);
    if (known === undefined || offset > known) offsets.set(partition, offset);
  };
  const raise = (position: Position) => {
    if (position.epoch !== epoch) offsets = new Map();
    epoch = position.epoch;
    for (const [partition, offset] of position.offsets) advance({ partition, offset });
  };
  const first = parsePosition(start);
  if (first !== undefined) raise(first);
  return {
    position: () => (epoch === undefined ? undefined : formatPosition({ epoch, offsets })),
    raise,
    advance(cursor) {
      if (epoch !== undefined) advance(cursor);
    },
    offsetOf: (partition) => offsets.get(partition),
    get epoch() {
      return epoch;
    },
  };
}
