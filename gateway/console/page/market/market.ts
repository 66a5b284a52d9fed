import type { Pill } from '../../../../sdk/types.ts';
import { microsOf } from './time.ts';

/** Symbols that the page holds, 1 KiB each; of more it says that they are not shown. */
export const SYMBOLS_MAX = 10_000;
/** Spreads of a spark line. */
export const SPREADS_MAX = 60;

/** What is known of a symbol. */
export interface Row {
  readonly symbol: string;
  spread: number;
  /** Against the pill before, in percentage points; undefined: that one is not known. */
  change: number | undefined;
  confidence: number;
  state: string;
  /** The pill's timestamp, ms. */
  atMs: number;
  /** Offset in the log: what is older never replaces it. */
  offset: number;
  /** Pills that were shown; tells one from the next. */
  count: number;
  /** Why nothing comes, as the stream said. */
  quiet: string | undefined;
  /** The last spreads, a ring; read by `spreadsOf`. */
  readonly ring: Float64Array;
}

/** All symbols that were heard of, bounded. */
export interface Market {
  readonly rows: ReadonlyMap<string, Row>;
  /** Whether symbols came that are not held. */
  readonly isFull: boolean;
  /** A pill of the stream. @returns whether it is now the symbol's newest */
  take(pill: Pill): boolean;
  /** A pill of a snapshot. @param epoch of its log; with another one all that was known is gone */
  show(pill: Pill, epoch: string): void;
  /** @param reason undefined: pills come again */
  quiet(symbol: string, reason: string | undefined): void;
  clear(): void;
}

/** Creates an empty market. */
export function createMarket(): Market {
  const rows = new Map<string, Row>();
  let epochNow: string | undefined;
  let isFull = false;

  const put = (pill: Pill): boolean => {
    const { symbol, gross_spread_percent: spread, confidence, market_state: state } = pill;
    const offset = Number(pill.cursor.split('-')[1]);
    const known = rows.get(symbol);
    if (known === undefined && rows.size >= SYMBOLS_MAX) {
      isFull = true;
      return false;
    }
    if (known !== undefined && offset <= known.offset) return false;
    const atMs = microsOf(pill.timestamp) / 1_000;
    const row = known ?? { symbol, count: 0, ring: new Float64Array(SPREADS_MAX) };
    const change = known === undefined ? undefined : spread - known.spread;
    row.ring[row.count % SPREADS_MAX] = spread;
    const news = { spread, change, confidence, state, atMs, offset, quiet: undefined };
    rows.set(symbol, Object.assign(row, news, { count: row.count + 1 }));
    return true;
  };
  const clear = () => {
    rows.clear();
    isFull = false;
    epochNow = undefined;
  };

  return {
    rows,
    get isFull() {
      return isFull;
    },
    take: (pill) => pill.late !== true && put(pill),
    show(pill, epoch) {
      if (epochNow !== undefined && epochNow !== epoch) clear();
      epochNow = epoch;
      put(pill);
    },
    quiet(symbol, reason) {
      const row = rows.get(symbol);
      if (row !== undefined) row.quiet = reason;
    },
    clear,
  };
}

/** The spreads that a row holds, oldest first. */
export function spreadsOf({ ring, count }: Pick<Row, 'ring' | 'count'>): number[] {
  if (count <= SPREADS_MAX) return [...ring.subarray(0, count)];
  const start = count % SPREADS_MAX;
  return [...ring.subarray(start), ...ring.subarray(0, start)];
}
