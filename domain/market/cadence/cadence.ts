import type { Micros } from '../../../schemas/timestamp.ts';

/** Intervals kept for each symbol: an odd number has a middle one. */
const RING = 15;
/** Pills within this time of an arrival belong to the same batch, and so to the same arrival. */
const ARRIVAL_MICROS = 50_000;
const FIRST_SLOTS = 256;
const NEVER = Number.NEGATIVE_INFINITY;

/** A silence is not late before this time, however fast the symbol's cadence. */
const LATE_MIN_MS = 5_000;
const LATE_CADENCES = 5;

export type Cadences = ReturnType<typeof createCadences>;

/**
 * The cadence of each symbol, the median of its last 15 arrival intervals: 70 bytes per symbol beside its entry in a map.
 * @param symbolsMax further symbols are not tracked: their median stays undefined
 */
export function createCadences(symbolsMax: number) {
  const slots = new Map<string, number>();
  let intervals = new Float32Array(0);
  let arrivals = new Float64Array(0);
  /** Number of intervals recorded; the ring holds the last of them. */
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
    // Insertion sort: for so few values, faster than a call of sort.
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
    /** Slot of a symbol, so that callers can save the map access; -1 when all slots are taken. */
    slotOf,
    noteAt,
    medianMsAt,
    /**
     * Records the receive time of a live pill. Costs a map access and a write; a time that is not
     * after the symbol's last arrival changes nothing.
     */
    note: (symbol: string, receivedAt: Micros) => noteAt(slotOf(symbol), receivedAt),
    /** Median time between arrivals in ms; undefined before the second. */
    medianMs: (symbol: string) => medianMsAt(slots.get(symbol) ?? -1),
  };
}

/**
 * How long a symbol may be silent in a session before it is late, in ms: five times its cadence, and
 * at least 5 s.
 */
export function lateAfterMs(medianMs: number | undefined): number {
  return Math.max(LATE_MIN_MS, Math.round(LATE_CADENCES * (medianMs ?? 0)));
}

function grown<A extends Float32Array | Float64Array | Uint32Array>(from: A, to: A): A {
  to.set(from);
  return to;
}
