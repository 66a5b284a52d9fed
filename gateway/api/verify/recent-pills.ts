import type { EffectivePill } from '../../../domain/order/judge.ts';
import { createPillColumns, type PillColumns } from '../../../domain/order/pill-columns.ts';
import { createRowIndex, hashText, NO_ROW } from '../../../lib/columns/row-index.ts';
import { isSameContent, type Pill } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** A recently published pill, and how often its identity was repeated. */
export interface RecentPill {
  readonly pill: EffectivePill;
  /** With the same content. */
  readonly repeats: number;
  /** With other content, which had no effect. */
  readonly conflicts: number;
}

export type RecentPills = ReturnType<typeof createRecentPills>;

/**
 * Holds the newest pills with effect, by identity, in columns: as objects, each collection of garbage
 * followed some 500,000 of them. @param pillsMax over all partitions
 */
export function createRecentPills(pillsMax: number) {
  const starts = new Map<number, number>();
  // A ring: the oldest pill leaves after another was added.
  const rows = pillsMax + 1;
  const columns = createPillColumns();
  const identities = createIdentities(rows, columns);
  const { find, findNamed } = identities;
  const { count, reset, recentAt } = createRepeats(rows, columns);
  const bySymbol = createChains(rows);
  let head = 0;
  let used = 0;

  const dropOldest = () => {
    starts.set(columns.partitionOf(head), columns.offsetOf(head) + 1);
    identities.remove(head);
    bySymbol.drop(columns.symbolOf(head), head);
    columns.clear(head);
    head = head + 1 === rows ? 0 : head + 1;
    used -= 1;
  };

  return {
    /** All pills of the partition from this offset on are held. */
    begin: (partition: number, offset: number) => void starts.set(partition, offset),
    /** Adds a pill; the oldest one is evicted if there is no room. */
    append(pill: EffectivePill) {
      const known = findNamed(pill.symbol, pill.id);
      // Beyond the repeat window an identity has effect again; the first pill stays the published one.
      if (known !== NO_ROW) return count(known, pill);
      const row = head + used >= rows ? head + used - rows : head + used;
      used += 1;
      columns.set(row, pill);
      reset(row);
      identities.add(pill, row);
      bySymbol.add(columns.symbolOf(row), row);
      if (used > pillsMax) dropOldest();
    },
    /** Counts a repeat or conflict of an identity. */
    repeat(pill: Pill) {
      const known = findNamed(pill.symbol, pill.id);
      if (known !== NO_ROW) count(known, pill);
    },
    find(symbol: string, id: string): RecentPill | undefined {
      const row = findNamed(symbol, id);
      return row === NO_ROW ? undefined : recentAt(row);
    },
    /** Finds the pills of all symbols. */
    findAll: (id: string): RecentPill[] =>
      [...bySymbol.symbols()].flatMap((symbol) => {
        const row = find(symbol, columns.names.nameOf(symbol), id);
        return row === NO_ROW ? [] : [recentAt(row)];
      }),
    /** The pills of one symbol, in log order. */
    ofSymbol(name: string): RecentPill[] {
      const symbol = columns.names.find(name);
      return symbol === undefined ? [] : bySymbol.rowsOf(symbol).map(recentAt);
    },
    /** By partition, the first offset from which all pills are held. */
    starts: starts as ReadonlyMap<number, number>,
    /** Receive time of the oldest pill held. */
    get oldestAt(): Micros | undefined {
      return used === 0 ? undefined : columns.receivedAtOf(head);
    },
  };
}

/** How often the identity of each row was repeated. */
function createRepeats(rows: number, columns: PillColumns) {
  const repeats = new Uint32Array(rows);
  const conflicts = new Uint32Array(rows);
  return {
    reset(row: number): void {
      repeats[row] = 0;
      conflicts[row] = 0;
    },
    count(row: number, pill: Pill): void {
      if (isSameContent(columns.get(row), pill)) repeats[row]! += 1;
      else conflicts[row]! += 1;
    },
    recentAt: (row: number): RecentPill => {
      return { pill: columns.get(row), repeats: repeats[row]!, conflicts: conflicts[row]! };
    },
  };
}

/** Finds rows of the columns by symbol and id. */
function createIdentities(rows: number, columns: PillColumns) {
  const hashes = new Int32Array(rows);
  const index = createRowIndex(rows);
  const find = (symbol: number, name: string, id: string): number => {
    const hash = hashText(id, hashText(name));
    let row = index.first(hash);
    while (row !== NO_ROW) {
      const isSame = hashes[row] === hash && columns.symbolOf(row) === symbol;
      if (isSame && columns.hasId(row, id)) return row;
      row = index.next(row);
    }
    return NO_ROW;
  };
  const findNamed = (name: string, id: string): number => {
    const symbol = columns.names.find(name);
    return symbol === undefined ? NO_ROW : find(symbol, name, id);
  };
  return {
    /** @param symbol number of the name in the columns. @returns the row, or `NO_ROW` */
    find,
    findNamed,
    add({ symbol, id }: EffectivePill, row: number): void {
      const hash = hashText(id, hashText(symbol));
      hashes[row] = hash;
      index.add(hash, row);
    },
    remove: (row: number): void => index.remove(hashes[row]!, row),
  };
}

/** The rows of each symbol, oldest first; rows leave in the order in which they were added. */
function createChains(rows: number) {
  const next = new Int32Array(rows);
  const first = new Map<number, number>();
  const last = new Map<number, number>();
  return {
    symbols: (): Iterable<number> => first.keys(),
    add(symbol: number, row: number): void {
      const before = last.get(symbol);
      if (before === undefined) first.set(symbol, row);
      else next[before] = row;
      next[row] = NO_ROW;
      last.set(symbol, row);
    },
    /** Removes the oldest row of a symbol. */
    drop(symbol: number, row: number): void {
      const after = next[row]!;
      if (after === NO_ROW) {
        first.delete(symbol);
        last.delete(symbol);
      } else first.set(symbol, after);
    },
    rowsOf(symbol: number): number[] {
      const found: number[] = [];
      for (let row = first.get(symbol) ?? NO_ROW; row !== NO_ROW; row = next[row]!) found.push(row);
      return found;
    },
  };
}
