import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';

/** The last pills with effect, for those who come back. Bounded by their number. */
export interface Backlog {
  /** From this offset of the partition on every pill with effect is held. */
  begin(partition: number, offset: number): void;
  /** Takes over a pill; offsets of a partition ascend. The oldest goes when there is no room. */
  append(pill: EffectivePill): void;
  /** Puts what came before the start: all pills with effect from `from` on, ascending. */
  prepend(partition: number, from: number, pills: readonly EffectivePill[]): void;
  /**
   * Tells of each pill that is forgotten, in the order of its partition.
   * @returns what ends that
   */
  onForget(listener: (pill: EffectivePill) => void): () => void;
  /** First offset from which on all is held; undefined when the partition does not exist. */
  startOf(partition: number): number | undefined;
  readonly starts: Offsets;
  /** How many more it can hold without forgetting one. */
  readonly room: number;
  /**
   * What came after these offsets, oldest receive time first; the log's order within a partition.
   * A partition that is absent is left out.
   * @param earlier what was read from the log below the starts, ascending in each partition
   * @returns undefined when more than `max` match
   */
  after(
    offsets: Offsets,
    matches: (pill: EffectivePill) => boolean,
    max: number,
    earlier?: ReadonlyMap<number, readonly EffectivePill[]>,
  ): EffectivePill[] | undefined;
}

interface Shelf {
  start: number;
  /** Those below `head` are forgotten: their places are empty, so that nothing holds them. */
  pills: (EffectivePill | undefined)[];
  /** Index of the first that is not forgotten. */
  head: number;
}

/** Empty places of a partition are cut off in steps: cutting an array costs its length. */
const CUT_AT = 4_096;

/** Creates one that holds nothing. @param pillsMax over all partitions */
export function createBacklog(pillsMax: number): Backlog {
  const shelves = new Map<number, Shelf>();
  const listeners = new Set<(pill: EffectivePill) => void>();
  let count = 0;

  const forgetOldest = () => {
    let oldest: Shelf | undefined;
    for (const shelf of shelves.values()) {
      const first = shelf.pills[shelf.head];
      if (first === undefined) continue;
      if (oldest === undefined || first.received_at < oldest.pills[oldest.head]!.received_at) {
        oldest = shelf;
      }
    }
    if (oldest === undefined) return;
    const pill = oldest.pills[oldest.head]!;
    oldest.start = pill.offset + 1;
    oldest.pills[oldest.head] = undefined;
    for (const listener of listeners) listener(pill);
    oldest.head += 1;
    count -= 1;
    if (oldest.head >= CUT_AT && oldest.head * 2 >= oldest.pills.length) {
      oldest.pills = oldest.pills.slice(oldest.head);
      oldest.head = 0;
    }
  };

  return {
    begin(partition, offset) {
      shelves.set(partition, { start: offset, pills: [], head: 0 });
    },
    append(pill) {
      shelves.get(pill.partition)!.pills.push(pill);
      count += 1;
      if (count > pillsMax) forgetOldest();
    },
    prepend(partition, from, pills) {
      const shelf = shelves.get(partition)!;
      if (from >= shelf.start) return;
      const kept = shelf.pills.slice(shelf.head);
      const before = pills.filter(({ offset }) => offset < shelf.start);
      shelf.pills = [...before, ...kept];
      shelf.head = 0;
      shelf.start = from;
      count += before.length;
      while (count > pillsMax) forgetOldest();
    },
    onForget(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    startOf: (partition) => shelves.get(partition)?.start,
    get starts() {
      return new Map([...shelves].map(([partition, { start }]) => [partition, start]));
    },
    get room() {
      return Math.max(0, pillsMax - count);
    },
    after(offsets, matches, max, earlier) {
      const runs: EffectivePill[][] = [];
      let found = 0;
      for (const [partition, offset] of offsets) {
        const shelf = shelves.get(partition);
        if (shelf === undefined) continue;
        const run: EffectivePill[] = [];
        const take = (pill: EffectivePill) => {
          if (!matches(pill)) return;
          found += 1;
          run.push(pill);
        };
        for (const pill of earlier?.get(partition) ?? []) {
          if (pill.offset > offset && pill.offset < shelf.start) take(pill);
          if (found > max) return undefined;
        }
        for (let at = indexAfter(shelf, offset); at < shelf.pills.length; at += 1) {
          take(shelf.pills[at]!);
          if (found > max) return undefined;
        }
        if (run.length > 0) runs.push(run);
      }
      return mergeRuns(runs);
    },
  };
}

/** Index of the first pill above an offset. */
function indexAfter({ pills, head }: Shelf, offset: number): number {
  let low = head;
  let high = pills.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (pills[middle]!.offset > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Merges runs of several partitions by receive time; the order within a run stays. */
export function mergeRuns(runs: readonly EffectivePill[][]): EffectivePill[] {
  if (runs.length <= 1) return runs[0] ?? [];
  const heads = runs.map(() => 0);
  const merged: EffectivePill[] = [];
  for (;;) {
    let next = -1;
    for (let run = 0; run < runs.length; run += 1) {
      const pill = runs[run]![heads[run]!];
      if (pill === undefined) continue;
      if (next < 0 || pill.received_at < runs[next]![heads[next]!]!.received_at) next = run;
    }
    if (next < 0) return merged;
    merged.push(runs[next]![heads[next]!]!);
    heads[next]! += 1;
  }
}
