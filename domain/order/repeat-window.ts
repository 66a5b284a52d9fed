import { createNames } from '../../lib/columns/names.ts';
import { createRowIndex, hashText, NO_ROW } from '../../lib/columns/row-index.ts';
import { createTextColumn } from '../../lib/columns/text-column.ts';
import { isSameContent, type Pill, type PillContent } from '../../schemas/pill.ts';

/** Characters of an id in its row: a UUID and some more. Longer ids cost a string each. */
export const ID_WIDTH = 40;

/**
 * Remembers the identities of the last offsets of one partition. A decision depends only on the last `size` offsets, so a process that starts
 * at offset o decides like all others once it has read from o − size.
 *
 * One row for each record, in columns: as objects, every process had some 400,000 of them, which
 * every collection of garbage followed.
 * @param size in offsets; 32,768 unless the topic settings differ
 * @param compareContent whether to keep contents, for `conflict`
 */
export function createRepeatWindow(size: number, compareContent: boolean) {
  // The record that is observed has a row besides those of the `size` offsets before it.
  const rows = size + 1;
  const offsets = new Float64Array(rows);
  const hashes = new Int32Array(rows);
  const symbols = new Uint32Array(rows);
  const ids = createTextColumn(rows, ID_WIDTH);
  const names = createNames();
  const contents = compareContent ? createContents(rows) : undefined;
  /** The newest row of each identity; the others only wait until they leave. */
  const index = createRowIndex(rows);
  const isNewest = new Uint8Array(rows);
  let head = 0;
  let used = 0;
  let count = 0;

  const unindex = (row: number) => {
    index.remove(hashes[row]!, row);
    isNewest[row] = 0;
    count -= 1;
  };
  const evictBefore = (offset: number) => {
    while (used > 0 && offsets[head]! < offset) {
      if (isNewest[head] === 1) unindex(head);
      names.release(symbols[head]!);
      ids.clear(head);
      contents?.clear(head);
      head = head + 1 === rows ? 0 : head + 1;
      used -= 1;
    }
  };
  const find = (hash: number, symbol: number, id: string): number => {
    let row = index.first(hash);
    while (row !== NO_ROW) {
      if (hashes[row] === hash && symbols[row] === symbol && ids.has(row, id)) return row;
      row = index.next(row);
    }
    return NO_ROW;
  };

  return {
    /** Number of identities in the window; never more than its size and one. */
    get count() {
      return count;
    },
    /**
     * Adds the valid record at `offset` (ascending), itself a repeat or not.
     * @returns `repeat` when one of the previous `size` offsets has the same identity, `conflict` when
     *   its content differs, else `first`
     */
    observe(pill: Pill, offset: number): 'first' | 'repeat' | 'conflict' {
      evictBefore(offset - size);
      const hash = hashText(pill.id, hashText(pill.symbol));
      const symbol = names.take(pill.symbol);
      const known = find(hash, symbol, pill.id);
      const row = head + used >= rows ? head + used - rows : head + used;
      used += 1;
      offsets[row] = offset;
      hashes[row] = hash;
      symbols[row] = symbol;
      ids.set(row, pill.id);
      // Later records are compared with the content of the first one in the chain.
      const same = known === NO_ROW || contents === undefined || contents.isSame(known, pill);
      if (known === NO_ROW) contents?.set(row, pill);
      else {
        contents?.copy(known, row);
        unindex(known);
      }
      index.add(hash, row);
      isNewest[row] = 1;
      count += 1;
      if (known === NO_ROW) return 'first';
      return same ? 'repeat' : 'conflict';
    },
  };
}

function createContents(rows: number) {
  const timestamps = new Float64Array(rows);
  const spreads = new Float64Array(rows);
  const confidences = new Float64Array(rows);
  const states = new Uint32Array(rows);
  const names = createNames();
  return {
    set(row: number, pill: PillContent): void {
      timestamps[row] = pill.timestamp;
      spreads[row] = pill.gross_spread_percent;
      confidences[row] = pill.confidence;
      states[row] = names.take(pill.market_state);
    },
    copy(from: number, to: number): void {
      timestamps[to] = timestamps[from]!;
      spreads[to] = spreads[from]!;
      confidences[to] = confidences[from]!;
      states[to] = names.take(names.nameOf(states[from]!));
    },
    isSame(row: number, pill: PillContent): boolean {
      const content = {
        timestamp: timestamps[row]!,
        gross_spread_percent: spreads[row]!,
        market_state: names.nameOf(states[row]!),
        confidence: confidences[row]!,
      };
      return isSameContent(content, pill);
    },
    clear: (row: number): void => void names.release(states[row]!),
  };
}
