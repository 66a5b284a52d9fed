/** Highest offset handed over, by partition; a partition that is absent is at its beginning. */
export type Offsets = ReadonlyMap<number, number>;

/** All pills up to and including these offsets were handed over. */
export interface Position {
  readonly epoch: string;
  readonly offsets: Offsets;
}

export interface Cursor {
  readonly partition: number;
  readonly offset: number;
}

const CURSOR = /^(\d{1,5})-(\d{1,16})$/;
const POSITION = /^([a-z0-9]{1,16}):(\d{1,5}-\d{1,16}(?:,\d{1,5}-\d{1,16})*)?$/;

/** Reads `"<partition>-<offset>"`. @returns undefined when the text is none */
export function parseCursor(text: string): Cursor | undefined {
  const match = CURSOR.exec(text);
  if (match === null) return undefined;
  return { partition: Number(match[1]), offset: Number(match[2]) };
}

/** Reads `"<epoch>:<p>-<o>,<p>-<o>"`. @returns undefined when the text is none */
export function parsePosition(text: unknown): Position | undefined {
  const match = typeof text === 'string' ? POSITION.exec(text) : null;
  if (match === null) return undefined;
  const cursors = (match[2] ?? '').split(',').filter(Boolean).map(parseCursor);
  return {
    epoch: match[1]!,
    offsets: new Map(cursors.map((cursor) => [cursor!.partition, cursor!.offset])),
  };
}

/** Writes `"<epoch>:<p>-<o>,<p>-<o>"`, partitions ascending. */
export function formatPosition({ epoch, offsets }: Position): string {
  const parts = [...offsets].sort(([a], [b]) => a - b);
  return `${epoch}:${parts.map(([partition, offset]) => `${partition}-${offset}`).join(',')}`;
}
