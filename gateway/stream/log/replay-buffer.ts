import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';

export type ReplayBuffer = ReturnType<typeof createReplayBuffer>;

interface PartitionBuffer {
  start: number;
  /** Entries below `head` are evicted: they are undefined, so that nothing keeps the pills alive. */
  pills: (EffectivePill | undefined)[];
  /** Index of the first pill that is not evicted. */
  head: number;
}

/** Evicted entries are cut off in steps, because cutting an array costs its length. */
const CUT_AT = 4_096;

/**
 * Creates an empty buffer of the last pills with effect, in memory for clients that resume.
 * @param pillsMax bound over all partitions
 */
export function createReplayBuffer(pillsMax: number) {
  const buffers = new Map<number, PartitionBuffer>();
  const listeners = new Set<(pill: EffectivePill) => void>();
  let count = 0;

  const evictOldest = () => {
    const oldest = oldestOf(buffers.values());
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
    /** Every pill with effect of the partition is held from this offset on. */
    begin(partition: number, offset: number) {
      buffers.set(partition, { start: offset, pills: [], head: 0 });
    },
    /** Takes a pill; offsets within a partition ascend. A full buffer evicts its oldest pill. */
    append(pill: EffectivePill) {
      buffers.get(pill.partition)!.pills.push(pill);
      count += 1;
      if (count > pillsMax) evictOldest();
    },
    /** Inserts pills from before the start: all pills with effect from `from` on, ascending. */
    prepend(partition: number, from: number, pills: readonly EffectivePill[]) {
      const buffer = buffers.get(partition)!;
      if (from >= buffer.start) return;
      const kept = buffer.pills.slice(buffer.head);
      const before = pills.filter(({ offset }) => offset < buffer.start);
      buffer.pills = [...before, ...kept];
      buffer.head = 0;
      buffer.start = from;
      count += before.length;
      while (count > pillsMax) evictOldest();
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
    after: selectAfter.bind(undefined, buffers),
  };
}

function oldestOf(buffers: Iterable<PartitionBuffer>): PartitionBuffer | undefined {
  let oldest: PartitionBuffer | undefined;
  for (const buffer of buffers) {
    const first = buffer.pills[buffer.head];
    if (first === undefined) continue;
    if (oldest === undefined || first.received_at < oldest.pills[oldest.head]!.received_at) {
      oldest = buffer;
    }
  }
  return oldest;
}

/**
 * The pills after these offsets, oldest receive time first, and in the order of the log within a
 * partition. Partitions that `offsets` does not name are left out.
 * @param earlier pills read from the log from before the starts, ascending in each partition
 * @returns undefined if more than `max` match
 */
function selectAfter(
  buffers: ReadonlyMap<number, PartitionBuffer>,
  offsets: Offsets,
  matches: (pill: EffectivePill) => boolean,
  max: number,
  earlier?: ReadonlyMap<number, readonly EffectivePill[]>,
): EffectivePill[] | undefined {
  const runs: EffectivePill[][] = [];
  let found = 0;
  for (const [partition, offset] of offsets) {
    const buffer = buffers.get(partition);
    if (buffer === undefined) continue;
    const run: EffectivePill[] = [];
    const take = (pill: EffectivePill) => {
      if (!matches(pill)) return;
      found += 1;
      run.push(pill);
    };
    for (const pill of earlier?.get(partition) ?? []) {
      if (pill.offset > offset && pill.offset < buffer.start) take(pill);
      if (found > max) return undefined;
    }
    for (let at = indexAfter(buffer, offset); at < buffer.pills.length; at += 1) {
      take(buffer.pills[at]!);
      if (found > max) return undefined;
    }
    if (run.length > 0) runs.push(run);
  }
  return mergeRuns(runs);
}

/** Index of the first pill above an offset. */
function indexAfter({ pills, head }: PartitionBuffer, offset: number): number {
  let low = head;
  let high = pills.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (pills[middle]!.offset > offset) high = middle;
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
