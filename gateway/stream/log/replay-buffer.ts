import type { EffectivePill } from '../../../domain/order/judge.ts';
import { createPillColumns, type PillView } from '../../../domain/order/pill-columns.ts';
import { createRowQueue, type RowQueue } from '../../../lib/columns/row-queue.ts';
import type { Offsets } from '../../../schemas/position.ts';

export type ReplayBuffer = ReturnType<typeof createReplayBuffer>;

interface PartitionBuffer {
  start: number;
  /** Rows of the pills, oldest first. */
  readonly rows: RowQueue;
}

/**
 * Creates an empty buffer of the last pills with effect, in memory for clients that resume. Pills are
 * kept in columns; an object is made of those that a client resumes for, once for all clients.
 * @param pillsMax bound over all partitions
 */
export function createReplayBuffer(pillsMax: number) {
  const buffers = new Map<number, PartitionBuffer>();
  const listeners = new Set<(pill: EffectivePill) => void>();
  const store = createStore();
  let count = 0;

  const evictOldest = () => {
    const oldest = store.oldestOf(buffers.values());
    if (oldest === undefined) return;
    const row = oldest.rows.shift();
    oldest.start = store.columns.offsetOf(row) + 1;
    for (const listener of listeners) listener(store.pillOf(row));
    store.remove(row);
    count -= 1;
  };

  return {
    /** Every pill with effect of the partition is held from this offset on. */
    begin(partition: number, offset: number) {
      buffers.set(partition, { start: offset, rows: createRowQueue() });
    },
    /** Takes a pill; offsets within a partition ascend. A full buffer evicts its oldest pill. */
    append(pill: EffectivePill) {
      buffers.get(pill.partition)!.rows.push(store.add(pill));
      count += 1;
      if (count > pillsMax) evictOldest();
    },
    /**
     * Inserts pills from before the start: all pills with effect from `from` on, ascending. Without
     * room for all of them, the oldest of the buffer are left out.
     */
    prepend(partition: number, from: number, pills: readonly EffectivePill[]) {
      const buffer = buffers.get(partition)!;
      if (from >= buffer.start) return;
      const before = pills.filter(({ offset }) => offset < buffer.start);
      buffer.start = from;
      for (const pill of before.reverse()) {
        if (count >= pillsMax) {
          buffer.start = pill.offset + 1;
          return;
        }
        buffer.rows.unshift(store.add(pill));
        count += 1;
      }
    },
    /** Reports each evicted pill, in the order of its partition. @returns ends the reports */
    onEvict(listener: (pill: EffectivePill) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** First offset from which on every pill is held; undefined if the partition does not exist. */
    startOf: (partition: number) => buffers.get(partition)?.start,
    get starts(): Offsets {
      return new Map([...buffers].map(([partition, { start }]) => [partition, start]));
    },
    /** How many more pills fit without an eviction. */
    get room() {
      return Math.max(0, pillsMax - count);
    },
    after: selectAfter.bind(undefined, buffers, store),
  };
}

type Store = ReturnType<typeof createStore>;

/** Rows of pills: at most one more than the bound, since a pill is evicted after another was added. */
function createStore() {
  const columns = createPillColumns();
  const free = createRowQueue();
  /** Pills that were requested and are not evicted yet. */
  const requested = new Map<number, EffectivePill>();
  let used = 0;
  return {
    columns,
    view: columns.createView(),
    add(pill: EffectivePill): number {
      const row = free.length > 0 ? free.shift() : used++;
      columns.set(row, pill);
      return row;
    },
    remove(row: number): void {
      columns.clear(row);
      requested.delete(row);
      free.push(row);
    },
    /** The same object for all who request the pill, so that many replays hold it once. */
    pillOf(row: number): EffectivePill {
      const known = requested.get(row);
      if (known !== undefined) return known;
      const pill = columns.get(row);
      requested.set(row, pill);
      return pill;
    },
    oldestOf(buffers: Iterable<PartitionBuffer>): PartitionBuffer | undefined {
      let oldest: PartitionBuffer | undefined;
      let oldestAt = Number.POSITIVE_INFINITY;
      for (const buffer of buffers) {
        if (buffer.rows.length === 0) continue;
        const receivedAt = columns.receivedAtOf(buffer.rows.at(0));
        if (oldest === undefined || receivedAt < oldestAt) {
          oldest = buffer;
          oldestAt = receivedAt;
        }
      }
      return oldest;
    },
  };
}

/**
 * The pills after these offsets, oldest receive time first, and in the order of the log within a
 * partition. Partitions that `offsets` does not name are left out.
 * @param matches must not keep what it gets
 * @param earlier pills read from the log from before the starts, ascending in each partition
 * @returns undefined if more than `max` match
 */
function selectAfter(
  buffers: ReadonlyMap<number, PartitionBuffer>,
  { columns, view, pillOf }: Store,
  offsets: Offsets,
  matches: (pill: PillView) => boolean,
  max: number,
  earlier?: ReadonlyMap<number, readonly EffectivePill[]>,
): EffectivePill[] | undefined {
  const runs: (EffectivePill | number)[][] = [];
  let found = 0;
  for (const [partition, offset] of offsets) {
    const buffer = buffers.get(partition);
    if (buffer === undefined) continue;
    const run: (EffectivePill | number)[] = [];
    for (const pill of earlier?.get(partition) ?? []) {
      if (pill.offset <= offset || pill.offset >= buffer.start || !matches(pill)) continue;
      found += 1;
      if (found > max) return undefined;
      run.push(pill);
    }
    const { rows } = buffer;
    for (let at = indexAfter(columns, rows, offset); at < rows.length; at += 1) {
      const row = rows.at(at);
      view.move(row);
      if (!matches(view)) continue;
      found += 1;
      if (found > max) return undefined;
      run.push(row);
    }
    if (run.length > 0) runs.push(run);
  }
  // A refused replay makes no objects.
  const pills = runs.map((run) => run.map((one) => (typeof one === 'number' ? pillOf(one) : one)));
  return mergeRuns(pills);
}

/** Index of the first row above an offset. */
function indexAfter(columns: Store['columns'], rows: RowQueue, offset: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (columns.offsetOf(rows.at(middle)) > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Merges the runs of several partitions by receive time; the order within a run stays. */
function mergeRuns(runs: readonly EffectivePill[][]): EffectivePill[] {
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
