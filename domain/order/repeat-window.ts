import { createNames } from '../../lib/columns/names.ts';
import { createRowIndex, hashText, NO_ROW } from '../../lib/columns/row-index.ts';
import { createTextColumn } from '../../lib/columns/text-column.ts';
import { isSameContent, type Pill, type PillContent } from '../../schemas/pill.ts';

/** Characters of an id in its row: a UUID and some more. Longer ids cost a string each. */
export const ID_WIDTH = 40;

/**
 * Remembers the identities of the last offsets of one partition. A decision depends only on the last
 * `size` offsets, so a process that starts at offset o decides like all others once it has read from
 * o − size.
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
  const contents = compareContent ? createContents(rows) : undefined;
  const identities = createIdentities(rows);
  let head = 0;
  let used = 0;

  const evictBefore = (offset: number) => {
    while (used > 0 && offsets[head]! < offset) {
      identities.clear(head);
      contents?.clear(head);
      head = head + 1 === rows ? 0 : head + 1;
      used -= 1;
    }
  };
  return {
    /** Number of identities in the window; never more than its size and one. */
    get count() {
      return identities.count;
    },
    /**
     * Adds the valid record at `offset` (ascending), itself a repeat or not.
     * @returns `repeat` when one of the previous `size` offsets has the same identity, `conflict` when
     *   its content differs, else `first`
     */
    observe(pill: Pill, offset: number): 'first' | 'repeat' | 'conflict' {
      evictBefore(offset - size);
      const row = head + used >= rows ? head + used - rows : head + used;
      used += 1;
      offsets[row] = offset;
      const known = identities.set(row, pill);
      if (known === NO_ROW) {
        contents?.set(row, pill);
        return 'first';
      }
      if (contents === undefined) return 'repeat';
      // Later records are compared with the content of the first one in the chain.
      contents.copy(known, row);
      return contents.isSame(known, pill) ? 'repeat' : 'conflict';
    },
  };
}

/** The identity of each row; of several rows with one identity, the newest is found. */
function createIdentities(rows: number) {
  const hashes = new Int32Array(rows);
  const symbols = new Uint32Array(rows);
  const ids = createTextColumn(rows, ID_WIDTH);
  const names = createNames();
  const index = createRowIndex(rows);
  const isNewest = new Uint8Array(rows);
  let count = 0;
  const unindex = (row: number) => {
    index.remove(hashes[row]!, row);
    isNewest[row] = 0;
    count -= 1;
  };
  return {
    /** Number of different identities. */
    get count() {
      return count;
    },
    /** @returns the row that had this identity before, or `NO_ROW` */
    set(row: number, pill: Pill): number {
      const hash = hashText(pill.id, hashText(pill.symbol));
      const symbol = names.take(pill.symbol);
      let known = index.first(hash);
      while (known !== NO_ROW) {
        const isSame = hashes[known] === hash && symbols[known] === symbol;
        if (isSame && ids.has(known, pill.id)) break;
        known = index.next(known);
      }
      if (known !== NO_ROW) unindex(known);
      hashes[row] = hash;
      symbols[row] = symbol;
      ids.set(row, pill.id);
      index.add(hash, row);
      isNewest[row] = 1;
      count += 1;
      return known;
    },
    clear(row: number): void {
      if (isNewest[row] === 1) unindex(row);
      names.release(symbols[row]!);
      ids.clear(row);
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
