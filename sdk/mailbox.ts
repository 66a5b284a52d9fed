import type { StreamItem } from './items.ts';
import type { Cursor, Position } from './position.ts';
import type { Track } from './track.ts';

interface Entry {
  item: StreamItem;
  /** What the position becomes once the item was taken. */
  advance: Cursor | undefined;
  /** A position told after the item. */
  mark: Position | undefined;
}

/** What waits for the iterator: in order, with the position that each item leads to. */
export interface Mailbox {
  push(item: StreamItem, advance: Cursor | undefined): void;
  /** A position that is true once all that waits was taken. */
  mark(position: Position): void;
  take(): StreamItem | undefined;
  /** Pills that wait, those of snapshots too; a gap counts as one. */
  readonly weight: number;
}

/**
 * Creates one. It has no bound of its own: its owner stops reading the socket.
 * @param track the position of what was taken
 * @param conflate of a symbol only the newest pill waits, with a count of what it replaced
 */
export function createMailbox(track: Track, conflate: boolean): Mailbox {
  const entries: Entry[] = [];
  const bySymbol = new Map<string, Entry>();
  let head = 0;
  let weight = 0;

  const replaces = (item: StreamItem): boolean => {
    if (!conflate || item.type !== 'pill') return false;
    const entry = bySymbol.get(item.symbol);
    if (entry?.item.type !== 'pill') return false;
    const skipped = (entry.item.skipped ?? 0) + 1;
    entry.item = item.late
      ? { ...entry.item, skipped }
      : { ...item, skipped: skipped + (item.skipped ?? 0) };
    return true;
  };

  return {
    push(item, advance) {
      if (replaces(item)) return;
      const entry: Entry = { item, advance, mark: undefined };
      entries.push(entry);
      weight += weightOf(item);
      if (conflate && item.type === 'pill') bySymbol.set(item.symbol, entry);
    },
    mark(position) {
      const last = entries.at(-1);
      if (last === undefined) track.raise(position);
      else last.mark = position;
    },
    take() {
      const entry = entries[head];
      if (entry === undefined) return undefined;
      head += 1;
      if (head === entries.length) {
        entries.length = 0;
        head = 0;
      } else if (head > 1_024) {
        entries.splice(0, head);
        head = 0;
      }
      const { item, advance, mark } = entry;
      weight -= weightOf(item);
      if (conflate && item.type === 'pill') bySymbol.delete(item.symbol);
      if (advance !== undefined) track.advance(advance);
      if (mark !== undefined) track.raise(mark);
      return item;
    },
    get weight() {
      return weight;
    },
  };
}

function weightOf(item: StreamItem): number {
  return item.type === 'snapshot' ? Math.max(1, item.pills.length) : 1;
}
