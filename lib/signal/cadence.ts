import type { Micros } from '../../schemas/timestamp.ts';

/** Intervals that are kept of each symbol: an odd number has a middle one. */
const RING = 15;
/** Pills of one batch come together: within this of an arrival they belong to it. */
const ARRIVAL_MICROS = 50_000;
const FIRST_SLOTS = 256;
const NEVER = Number.NEGATIVE_INFINITY;

/** A silence is not late before this, however quick the symbol is. */
const LATE_MIN_MS = 5_000;
const LATE_CADENCES = 5;

/** How often each symbol's pills come: the median of its last 15 intervals. */
export interface Cadences {
  /**
   * Takes the receive time of a live pill. Costs a look-up and a write; a time that is not after
   * the symbol's last arrival changes nothing.
   */
  note(symbol: string, receivedAt: Micros): void;
  /** Median time between arrivals in ms; undefined before the second. */
  medianMs(symbol: string): number | undefined;
  /** A symbol's slot, for those who hold it: they need no look-up. -1 where there is no room. */
  slotOf(symbol: string): number;
  noteAt(slot: number, receivedAt: Micros): void;
  medianMsAt(slot: number): number | undefined;
  readonly size: number;
}

/**
 * Creates the memory of all symbols. It takes 70 bytes a symbol beside its entry in a map.
 * @param symbolsMax further symbols are not remembered: their median stays undefined
 */
export function createCadences(symbolsMax: number): Cadences {
  const slots = new Map<string, number>();
  let intervals = new Float32Array(0);
  let arrivals = new Float64Array(0);
  /** How many intervals were noted; the ring holds the last of them. */
  let counts = new Uint32Array(0);
  const sorted = new Float32Array(RING);

  const slotOf = (symbol: string): number => {
    const known = slots.get(symbol);
    if (known !== undefined) return known;
    const slot = slots.size;
    if (slot >= symbolsMax) return -1;
    if (slot === arrivals.length) {
      const length = Math.min(symbolsMax, Math.max(FIRST_SLOTS, slot * 2));
      intervals = grown(intervals, new Float32Array(length * RING));
      arrivals = grown(arrivals, new Float64Array(length).fill(NEVER, slot));
      counts = grown(counts, new Uint32Array(length));
    }
    slots.set(symbol, slot);
    return slot;
  };
  const noteAt = (slot: number, receivedAt: Micros) => {
    if (slot < 0) return;
    const before = arrivals[slot]!;
    const passed = receivedAt - before;
    if (passed < ARRIVAL_MICROS) return;
    arrivals[slot] = receivedAt;
    if (before === NEVER) return;
    intervals[slot * RING + (counts[slot]! % RING)] = passed / 1000;
    counts[slot]! += 1;
  };
  const medianMsAt = (slot: number) => {
    const held = slot < 0 ? 0 : Math.min(counts[slot]!, RING);
    if (held === 0) return undefined;
    // Sorted by insertion: for so few that is quicker than a call of sort.
    for (let at = 0; at < held; at += 1) {
      const value = intervals[slot * RING + at]!;
      let to = at;
      for (; to > 0 && sorted[to - 1]! > value; to -= 1) sorted[to] = sorted[to - 1]!;
      sorted[to] = value;
    }
    return sorted[held >>> 1];
  };

  return {
    get size() {
      return slots.size;
    },
    slotOf,
    noteAt,
    medianMsAt,
    note: (symbol, receivedAt) => noteAt(slotOf(symbol), receivedAt),
    medianMs: (symbol) => medianMsAt(slots.get(symbol) ?? -1),
  };
}

/**
 * How long a symbol may be silent in a session before it is late, in ms: five of its cadences, and
 * 5 s at the least.
 */
export function lateAfterMs(medianMs: number | undefined): number {
  return Math.max(LATE_MIN_MS, Math.round(LATE_CADENCES * (medianMs ?? 0)));
}

function grown<A extends Float32Array | Float64Array | Uint32Array>(from: A, to: A): A {
  to.set(from);
  return to;
}
