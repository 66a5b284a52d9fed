import type { EffectivePill } from '../../../domain/order/judge.ts';
import { isSameContent, type Pill } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** A recently published pill, and how often its identity was repeated. */
export interface RecentPill {
  readonly pill: EffectivePill;
  /** With the same content. */
  repeats: number;
  /** With other content, which had no effect. */
  conflicts: number;
}

/** Empty slots are cut off in batches: slicing takes time in proportion to the array's length. */
const CUT_AT = 4_096;

export type RecentPills = ReturnType<typeof createRecentPills>;

/** Holds the newest pills with effect, by identity. @param pillsMax over all partitions */
export function createRecentPills(pillsMax: number) {
  const bySymbol = new Map<string, Map<string, RecentPill>>();
  const starts = new Map<number, number>();
  let queue: (EffectivePill | undefined)[] = [];
  let head = 0;

  const dropOldest = () => {
    const { symbol, id, partition, offset } = queue[head]!;
    queue[head] = undefined;
    head += 1;
    starts.set(partition, offset + 1);
    const pills = bySymbol.get(symbol);
    pills?.delete(id);
    if (pills?.size === 0) bySymbol.delete(symbol);
    if (head >= CUT_AT && head * 2 >= queue.length) {
      queue = queue.slice(head);
      head = 0;
    }
  };
  const count = (known: RecentPill, pill: Pill) => {
    if (isSameContent(known.pill, pill)) known.repeats += 1;
    else known.conflicts += 1;
  };

  return {
    /** All pills of the partition from this offset on are held. */
    begin: (partition: number, offset: number) => void starts.set(partition, offset),
    /** Adds a pill; the oldest one is evicted if there is no room. */
    append(pill: EffectivePill) {
      const { symbol, id } = pill;
      let pills = bySymbol.get(symbol);
      if (pills === undefined) {
        pills = new Map();
        bySymbol.set(symbol, pills);
      }
      const known = pills.get(id);
      // Beyond the repeat window an identity has effect again; the first pill stays the published one.
      if (known !== undefined) count(known, pill);
      else {
        pills.set(id, { pill, repeats: 0, conflicts: 0 });
        queue.push(pill);
        if (queue.length - head > pillsMax) dropOldest();
      }
    },
    /** Counts a repeat or conflict of an identity. */
    repeat(pill: Pill) {
      const known = bySymbol.get(pill.symbol)?.get(pill.id);
      if (known !== undefined) count(known, pill);
    },
    find: (symbol: string, id: string) => bySymbol.get(symbol)?.get(id),
    /** Finds the pills of all symbols. */
    findAll: (id: string) => [...bySymbol.values()].flatMap((pills) => pills.get(id) ?? []),
    /** The pills of one symbol, in log order. */
    ofSymbol: (symbol: string): Iterable<RecentPill> => bySymbol.get(symbol)?.values() ?? [],
    /** By partition, the first offset from which all pills are held. */
    starts: starts as ReadonlyMap<number, number>,
    /** Receive time of the oldest pill held. */
    get oldestAt(): Micros | undefined {
      return queue[head]?.received_at;
    },
  };
}
