/** `"<partition>-<offset>"`: where a pill is in the log. */
export type Cursor = string;

/** Highest offset handed over, by partition. An absent partition is at its beginning. */
export type Offsets = ReadonlyMap<number, number>;

/** All pills up to and including these offsets were handed over. */
export interface Position {
  readonly epoch: string;
  readonly offsets: Offsets;
}

/** Longest position text that is parsed: 1,000 partitions of 20 characters and the epoch. */
export const POSITION_LENGTH_MAX = 20_480;

const ONE_CURSOR = '(0|[1-9][0-9]{0,4})-(0|[1-9][0-9]{0,15})';
export const EPOCH_PATTERN = '^[a-z0-9]{1,16}$';
/** Form of a cursor or a position, for schemas. */
export const CURSOR_OR_POSITION_PATTERN = `^(${ONE_CURSOR}|[a-z0-9]{1,16}:(${ONE_CURSOR}(,${ONE_CURSOR})*)?)$`;
const CURSOR = new RegExp(`^${ONE_CURSOR}$`);
const EPOCH = new RegExp(EPOCH_PATTERN);

export function formatCursor(partition: number, offset: number): Cursor {
  return `${partition}-${offset}`;
}

/** @returns partition and offset, or undefined when the text is not a cursor */
export function parseCursor(text: string): { partition: number; offset: number } | undefined {
  const match = CURSOR.exec(text);
  if (match === null) return undefined;
  const offset = Number(match[2]);
  return Number.isSafeInteger(offset) ? { partition: Number(match[1]), offset } : undefined;
}

/** Formats `"<epoch>:<p>-<o>,<p>-<o>"`, partitions ascending. */
export function formatPosition(epoch: string, offsets: Offsets): string {
  const parts = [...offsets].sort(([a], [b]) => a - b);
  return `${epoch}:${parts.map(([partition, offset]) => `${partition}-${offset}`).join(',')}`;
}

/** @returns the position, or undefined when the text is none (e.g. names a partition twice) */
export function parsePosition(text: string): Position | undefined {
  if (text.length > POSITION_LENGTH_MAX) return undefined;
  const colon = text.indexOf(':');
  const epoch = text.slice(0, colon);
  if (colon < 0 || !EPOCH.test(epoch)) return undefined;
  const offsets = new Map<number, number>();
  const rest = text.slice(colon + 1);
  if (rest === '') return { epoch, offsets };
  for (const part of rest.split(',')) {
    const cursor = parseCursor(part);
    if (cursor === undefined || offsets.has(cursor.partition)) return undefined;
    offsets.set(cursor.partition, cursor.offset);
  }
  return { epoch, offsets };
}
