/** All pills up to and including these offsets were delivered. */
export interface Position {
  readonly epoch: string;
  /** Offset by partition; a partition that is absent is at its beginning. */
  readonly offsets: ReadonlyMap<number, number>;
}

export interface Cursor {
  readonly partition: number;
  readonly offset: number;
}

const CURSOR = /^(\d{1,5})-(\d{1,16})$/;
const POSITION = /^([a-z0-9]{1,16}):(\d{1,5}-\d{1,16}(?:,\d{1,5}-\d{1,16})*)?$/;

/** Reads `"<partition>-<offset>"`. @returns undefined if the text is not a cursor */
export function parseCursor(text: string | null | undefined): Cursor | undefined {
  const match = CURSOR.exec(text ?? '');
  if (match === null) return undefined;
  return { partition: Number(match[1]), offset: Number(match[2]) };
}

/** Offset of a cursor; -1, before every pill, if the text is not a cursor. */
export function offsetOf(cursor: string | null | undefined): number {
  return parseCursor(cursor)?.offset ?? -1;
}

/** Reads `"<epoch>:<p>-<o>,<p>-<o>"`. @returns undefined if the text is not a position */
export function parsePosition(text: unknown): Position | undefined {
  const match = typeof text === 'string' ? POSITION.exec(text) : null;
  if (match === null) return undefined;
  const cursors = (match[2] ?? '').split(',').filter(Boolean).map(parseCursor);
  return {
    epoch: match[1]!,
    offsets: new Map(cursors.map((cursor) => [cursor!.partition, cursor!.offset])),
  };
}

/** A position that only grows, unless it turns out to be impossible: see `replace`. */
export type PositionTracker = ReturnType<typeof createPositionTracker>;

/** @param start a position in its text form */
export function createPositionTracker(start?: string) {
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
    /** `"<epoch>:<p>-<o>,<p>-<o>"`, partitions ascending; undefined until a position is known. */
    position(): string | undefined {
      const parts = [...offsets].sort(([a], [b]) => a - b);
      const text = parts.map(([partition, offset]) => `${partition}-${offset}`).join(',');
      return epoch === undefined ? undefined : `${epoch}:${text}`;
    },
    /** Everything up to the position was delivered. Another epoch replaces all offsets. */
    raise,
    /** Forgets a position that the log does not have. */
    replace(position: Position): void {
      epoch = undefined;
      raise(position);
    },
    /** Everything up to the cursor was delivered in its partition. No effect before `raise`. */
    advance(cursor: Cursor): void {
      if (epoch !== undefined) advance(cursor);
    },
  };
}
