import type { EffectivePill } from '../../../lib/order/judge.ts';
import { isSameContent, type Pill } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** A pill that was published lately, and what came of it. */
export interface RecentPill {
  readonly pill: EffectivePill;
  /** How often the same pill came again. */
  repeats: number;
  /** How often its identity came with other content, which had no effect. */
  conflicts: number;
}

/** The newest pills with effect, by identity. */
export interface Recent {
  /** From this offset of the partition on all are held. */
  begin(partition: number, offset: number): void;
  /** Takes over a pill; the oldest goes when there is no room. */
  append(pill: EffectivePill): void;
  /** The identity of a pill came again. */
  repeat(pill: Pill): void;
  find(symbol: string, id: string): RecentPill | undefined;
  /** Of all symbols. */
  findAll(id: string): RecentPill[];
  /** Of a symbol, in the order of the log. */
  ofSymbol(symbol: string): Iterable<RecentPill>;
  /** First offset from which on all are held; undefined: no such partition. */
  startOf(partition: number): number | undefined;
  readonly starts: ReadonlyMap<number, number>;
  /** Receive time of the oldest that is held. */
  readonly oldestAt: Micros | undefined;
}

/** Empty places are cut off in steps: cutting an array costs its length. */
const CUT_AT = 4_096;

/** Creates one that holds nothing. @param pillsMax over all partitions */
export function createRecent(pillsMax: number): Recent {
  const bySymbol = new Map<string, Map<string, RecentPill>>();
  const starts = new Map<number, number>();
  let line: (EffectivePill | undefined)[] = [];
  let head = 0;

  const forgetOldest = () => {
    const { symbol, id, partition, offset } = line[head]!;
    line[head] = undefined;
    head += 1;
    starts.set(partition, offset + 1);
    const pills = bySymbol.get(symbol);
    // An identity that came again long after has the place of its first pill no more.
    if (pills?.get(id)?.pill.offset === offset) pills.delete(id);
    if (pills?.size === 0) bySymbol.delete(symbol);
    if (head >= CUT_AT && head * 2 >= line.length) {
      line = line.slice(head);
      head = 0;
    }
  };
  const count = (known: RecentPill, pill: Pill) => {
    if (isSameContent(known.pill, pill)) known.repeats += 1;
    else known.conflicts += 1;
  };

  return {
    begin: (partition, offset) => void starts.set(partition, offset),
    append(pill) {
      const { symbol, id } = pill;
      let pills = bySymbol.get(symbol);
      if (pills === undefined) {
        pills = new Map();
        bySymbol.set(symbol, pills);
      }
      const known = pills.get(id);
      // Beyond the repeat window it has effect again; the first is still the one that is published.
      if (known !== undefined) count(known, pill);
      else {
        pills.set(id, { pill, repeats: 0, conflicts: 0 });
        line.push(pill);
        if (line.length - head > pillsMax) forgetOldest();
      }
    },
    repeat(pill) {
      const known = bySymbol.get(pill.symbol)?.get(pill.id);
      if (known !== undefined) count(known, pill);
    },
    find: (symbol, id) => bySymbol.get(symbol)?.get(id),
    findAll(id) {
      const found: RecentPill[] = [];
      for (const pills of bySymbol.values()) {
        const one = pills.get(id);
        if (one !== undefined) found.push(one);
      }
      return found;
    },
    ofSymbol: (symbol) => bySymbol.get(symbol)?.values() ?? [],
    startOf: (partition) => starts.get(partition),
    starts,
    get oldestAt() {
      return line[head]?.received_at;
    },
  };
}
