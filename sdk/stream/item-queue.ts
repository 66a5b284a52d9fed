import type { Cursor, Position, PositionTracker } from './stream-position.ts';
import type { StreamItem } from './stream-types.ts';

interface Entry {
  item: StreamItem;
  /** Advances the position once the item is taken. */
  advance: Cursor | undefined;
  /** A position that the server sent after the item. */
  mark: Position | undefined;
  /** Whether `mark` replaces the position before, which the log does not have. */
  replaces: boolean;
}

/**
 * Items that wait for the iterator, in order, with the position that each one leads to. The queue
 * has no bound of its own: its owner stops reading the socket.
 * @param tracker the position of the taken items
 * @param conflate keep only the newest pill of each symbol, with a count of the pills that it
 * replaced
 */
export function createItemQueue(tracker: PositionTracker, conflate: boolean) {
  const entries: Entry[] = [];
  const bySymbol = new Map<string, Entry>();
  let head = 0;
  let weight = 0;

  const reach = (position: Position, replaces: boolean) =>
    replaces ? tracker.replace(position) : tracker.raise(position);
  const conflates = (item: StreamItem): boolean => {
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
    push(item: StreamItem, advance: Cursor | undefined): void {
      if (conflates(item)) return;
      const entry: Entry = { item, advance, mark: undefined, replaces: false };
      entries.push(entry);
      weight += weightOf(item);
      if (conflate && item.type === 'pill') bySymbol.set(item.symbol, entry);
    },
    /** A position that holds once all waiting items are taken. */
    mark(position: Position, replaces = false): void {
      const last = entries.at(-1);
      if (last === undefined) reach(position, replaces);
      else {
        last.mark = position;
        last.replaces ||= replaces;
      }
    },
    take(): StreamItem | undefined {
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
      const { item, advance, mark, replaces } = entry;
      weight -= weightOf(item);
      if (conflate && item.type === 'pill') bySymbol.delete(item.symbol);
      if (advance !== undefined) tracker.advance(advance);
      if (mark !== undefined) reach(mark, replaces);
      return item;
    },
    /** Number of waiting pills, including those of snapshots; a gap counts as one. */
    get weight(): number {
      return weight;
    },
  };
}

function weightOf(item: StreamItem): number {
  return item.type === 'snapshot' ? Math.max(1, item.pills.length) : 1;
}
