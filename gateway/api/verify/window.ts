import { LRUCache } from 'lru-cache';
import { createCadences } from '../../../lib/signal/cadence.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { VERIFY_LIMITS } from './limits.ts';

/** A live pill, as much of it as its symbol's figures need. */
export interface LivePill {
  readonly spread: number;
  readonly receivedAt: Micros;
}

/** The last live pills of a symbol: what spread is usual, and how often they come. */
export interface SymbolWindow {
  /** First offset from which on none is missing. */
  readonly from: number;
  /** Whether it holds as many as it can, or all there are. */
  readonly isWhole: boolean;
  readonly count: number;
  push(pill: LivePill): void;
  /** Puts those before `from`, oldest first; with them it is whole. */
  fill(older: readonly LivePill[]): void;
  /** Their spreads, newly copied, in no order. */
  spreads(): Float64Array;
  /** Median interval in ms; undefined before the second pill. */
  cadenceMs(): number | undefined;
}

/** Arrivals that are kept: enough for the median of 15 intervals, with batches of four. */
const ARRIVALS = 64;
const FIRST_SLOTS = 32;

/** Creates one that holds nothing. It grows to 8.5 kB. */
export function createSymbolWindow(from: number): SymbolWindow {
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
  /** The last pills, oldest first. Of those that are too old for it the arrival is not told. */
  const pills = (): LivePill[] =>
    Array.from({ length: held() }, (_, index) => {
      const at = count - held() + index;
      const receivedAt = at < count - ARRIVALS ? Number.NaN : arrivals[at % ARRIVALS]!;
      return { spread: spreads[at % spreads.length]!, receivedAt };
    });

  return {
    from,
    get isWhole() {
      return isFilled || count >= windowPills;
    },
    get count() {
      return held();
    },
    push,
    fill(older) {
      const newer = pills();
      count = 0;
      for (const pill of older) push(pill);
      for (const pill of newer) push(pill);
      isFilled = true;
    },
    spreads: () => spreads.slice(0, held()),
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

/** Windows by symbol; of too many the one goes that was not asked for the longest. */
export interface Windows {
  /** Makes the symbol's window from what is remembered, if it has none. */
  ask(symbol: string, remembered: () => SymbolWindow): SymbolWindow;
  /** A live pill has come. @param from first offset that was read here of its partition */
  note(symbol: string, pill: LivePill, from: number): void;
  peek(symbol: string): SymbolWindow | undefined;
}

export function createWindows(max: number = VERIFY_LIMITS.windowsMax): Windows {
  const windows = new LRUCache<string, SymbolWindow>({ max });
  let isFull = false;
  return {
    ask(symbol, remembered) {
      const known = windows.get(symbol);
      if (known !== undefined) return known;
      const made = remembered();
      isFull ||= windows.size >= max;
      windows.set(symbol, made);
      return made;
    },
    note(symbol, pill, from) {
      const known = windows.peek(symbol);
      if (known !== undefined) known.push(pill);
      else if (!isFull && windows.size < max) {
        const made = createSymbolWindow(from);
        made.push(pill);
        windows.set(symbol, made);
      }
    },
    peek: (symbol) => windows.peek(symbol),
  };
}
