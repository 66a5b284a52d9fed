import { LRUCache } from 'lru-cache';
import { createCadences } from '../../../domain/market/cadence/cadence.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { VERIFY_LIMITS } from './limits.ts';

/** The part of a live pill that the figures of its symbol need. */
export interface LivePill {
  readonly spread: number;
  readonly receivedAt: Micros;
}

/** Receive times held: enough for the median of 15 intervals, with batches of four. */
const ARRIVALS = 64;
const FIRST_SLOTS = 32;

/** The last live pills of a symbol: their spreads, and their cadence. */
export type SymbolWindow = ReturnType<typeof createSymbolWindow>;

/** Creates an empty window, which grows to 8.5 kB. @param from first offset that it may hold */
export function createSymbolWindow(from: number) {
  const { windowPills } = VERIFY_LIMITS;
  let spreads = new Float64Array(FIRST_SLOTS);
  const arrivals = new Float64Array(ARRIVALS);
  let count = 0;
  let isFilled = false;

  const push = ({ spread, receivedAt }: LivePill) => {
    if (count === spreads.length && count < windowPills) {
      const grown = new Float64Array(Math.min(windowPills, count * 2));
      grown.set(spreads);
      spreads = grown;
    }
    spreads[count % spreads.length] = spread;
    arrivals[count % ARRIVALS] = receivedAt;
    count += 1;
  };
  const held = () => Math.min(count, spreads.length);
  /** The pills held, oldest first; NaN as receive time of pills before the last `ARRIVALS`. */
  const pills = (): LivePill[] =>
    Array.from({ length: held() }, (_, index) => {
      const at = count - held() + index;
      const receivedAt = at < count - ARRIVALS ? Number.NaN : arrivals[at % ARRIVALS]!;
      return { spread: spreads[at % spreads.length]!, receivedAt };
    });

  return {
    /** First offset from which no pill is missing. */
    from,
    /** Whether the window is full, or holds every pill of its symbol. */
    get isWhole() {
      return isFilled || count >= windowPills;
    },
    get count() {
      return held();
    },
    push,
    /** Inserts the pills before `from`, oldest first; the window is whole afterwards. */
    fill(older: readonly LivePill[]) {
      const newer = pills();
      count = 0;
      for (const pill of [...older, ...newer]) push(pill);
      isFilled = true;
    },
    /** The last pills, at most `ARRIVALS`, oldest first. */
    last: () => pills().slice(-ARRIVALS),
    /** A copy of the spreads, in no order. */
    spreads: () => spreads.slice(0, held()),
    /** Median interval in ms; undefined before the second pill. */
    cadenceMs() {
      const cadence = createCadences(1);
      const slot = cadence.slotOf('');
      for (let at = Math.max(0, count - ARRIVALS); at < count; at += 1) {
        cadence.noteAt(slot, arrivals[at % ARRIVALS]!);
      }
      return cadence.medianMsAt(slot);
    },
  };
}

/** Windows by symbol; if there are too many, the one requested longest ago is evicted. */
export function createSymbolWindows(max: number = VERIFY_LIMITS.windowsMax) {
  const windows = new LRUCache<string, SymbolWindow>({ max });
  let isFull = false;
  return {
    /** Gets a symbol's window; creates it if there is none. */
    get(symbol: string, create: () => SymbolWindow): SymbolWindow {
      const known = windows.get(symbol);
      if (known !== undefined) return known;
      const created = create();
      isFull ||= windows.size >= max;
      windows.set(symbol, created);
      return created;
    },
    /** Adds a live pill. @param from first offset that this process read of the pill's partition */
    add(symbol: string, pill: LivePill, from: number): void {
      const known = windows.peek(symbol);
      if (known !== undefined) known.push(pill);
      else if (!isFull && windows.size < max) {
        const created = createSymbolWindow(from);
        created.push(pill);
        windows.set(symbol, created);
      }
    },
    peek: (symbol: string) => windows.peek(symbol),
  };
}
