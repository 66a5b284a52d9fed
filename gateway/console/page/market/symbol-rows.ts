import type { Pill } from '../../../../sdk/exports.ts';
import { microsOf } from './platform-clock.ts';

/** Symbols that the page keeps, 1 KiB each; the page shows when there are more. */
export const SYMBOLS_MAX = 10_000;
/** Spreads of a sparkline. */
export const SPREADS_MAX = 60;
/** Symbols whose name, venue and earlier spreads are read: the first ones that arrive. */
const FACTS_MAX = 1_000;

/** The state of a symbol. */
export interface Row {
  readonly symbol: string;
  /** Company, index or pair of currencies; undefined if it is not known. */
  name: string | undefined;
  /** Code of the venue; undefined if it is not known. */
  venue: string | undefined;
  spread: number;
  /** Change from the previous pill, in percentage points; undefined if that pill is unknown. */
  change: number | undefined;
  /** When the previous pill was received, in ms; undefined if it is unknown. */
  sinceMs: number | undefined;
  confidence: number;
  state: string;
  /** The pill's timestamp, in ms. */
  atMs: number;
  /** When the pill was received, in µs. */
  receivedAt: number;
  /** When the first pill of the stream was received, in µs: earlier ones come from history. */
  readonly firstReceivedAt: number;
  /** Offset in the log: an older pill never replaces a newer one. */
  offset: number;
  /** Number of pills so far, which distinguishes one pill from the next. */
  count: number;
  /** Why no pills arrive, by the stream's `quiet` frame. */
  quiet: string | undefined;
  /** The last spreads, oldest first. */
  spreads: number[];
}

/** A venue, and its state by the calendar. */
export interface Venue {
  readonly name: string;
  readonly state: 'open' | 'lunch_break' | 'closed' | 'holiday' | 'unknown';
  /** When it opens; null while it is open, or if that is not known. */
  readonly opens_at: string | null;
  /** When its state changes; null if it never does, or that is not known. */
  readonly changes_at: string | null;
}

/** What the page knows of a symbol besides its pills. */
export interface SymbolFacts {
  readonly name: string | null;
  readonly venue: string | null;
  /** The last spreads with their receive times in µs, oldest first. */
  readonly spreads: readonly (readonly [receivedAt: number, spread: number])[];
}

/** Creates an empty market: all known symbols, up to a bound. */
export function createMarket() {
  const rows = new Map<string, Row>();
  const venues = new Map<string, Venue>();
  /** Symbols whose facts are not known yet. */
  const unread = new Set<string>();
  let currentEpoch: string | undefined;
  let isFull = false;

  const put = (pill: Pill): boolean => {
    const { symbol } = pill;
    const known = rows.get(symbol);
    if (known === undefined && rows.size >= SYMBOLS_MAX) {
      isFull = true;
      return false;
    }
    if (known !== undefined && offsetOf(pill) <= known.offset) return false;
    if (known === undefined && rows.size < FACTS_MAX) unread.add(symbol);
    rows.set(symbol, movedRow(known, pill));
    return true;
  };
  const clear = () => {
    rows.clear();
    unread.clear();
    isFull = false;
    currentEpoch = undefined;
  };

  return {
    rows: rows as ReadonlyMap<string, Row>,
    venues: venues as ReadonlyMap<string, Venue>,
    unread: unread as ReadonlySet<string>,
    /** Whether there are symbols beyond the bound. */
    get isFull() {
      return isFull;
    },
    /** Adds a pill of the stream. @returns whether it is now the newest of its symbol */
    addPill: (pill: Pill) => pill.late !== true && put(pill),
    /** Adds a pill of a snapshot. @param epoch of its log; another epoch clears the market */
    addSnapshotPill(pill: Pill, epoch: string): void {
      if (currentEpoch !== undefined && currentEpoch !== epoch) clear();
      currentEpoch = epoch;
      put(pill);
    },
    /** Adds name, venue, and the spreads before the first pill of the stream. */
    addFacts(symbol: string, facts: SymbolFacts): void {
      const row = rows.get(symbol);
      if (unread.delete(symbol) && row !== undefined) fillRow(row, facts);
    },
    setVenue: (code: string, venue: Venue) => void venues.set(code, venue),
    /** @param reason why no pills arrive; undefined: pills arrive again */
    setQuiet(symbol: string, reason: string | undefined): void {
      const row = rows.get(symbol);
      if (row !== undefined) row.quiet = reason;
    },
    clear,
  };
}

const offsetOf = ({ cursor }: Pill) => Number(cursor.split('-')[1]);

/** The row with its newest pill; the same object if there is one. */
function movedRow(known: Row | undefined, pill: Pill): Row {
  const { symbol, gross_spread_percent: spread, confidence, market_state: state } = pill;
  const receivedAt = microsOf(pill.received_at);
  const spreads = known?.spreads ?? [];
  spreads.push(spread);
  if (spreads.length > SPREADS_MAX) spreads.shift();
  const first = {
    ...{ symbol, spreads, name: undefined, venue: undefined },
    ...{ count: 0, firstReceivedAt: receivedAt },
  };
  return Object.assign(known ?? first, {
    ...{ spread, confidence, state, receivedAt, quiet: undefined },
    change: known === undefined ? undefined : spread - known.spread,
    sinceMs: known === undefined ? undefined : known.receivedAt / 1_000,
    atMs: microsOf(pill.timestamp) / 1_000,
    offset: offsetOf(pill),
    count: (known?.count ?? 0) + 1,
  });
}

function fillRow(row: Row, { name, venue, spreads }: SymbolFacts): void {
  row.name = name ?? undefined;
  row.venue = venue ?? undefined;
  const earlier = spreads.filter(([receivedAt]) => receivedAt < row.firstReceivedAt);
  const [sinceAt, previous] = earlier.at(-1) ?? [];
  if (row.count === 1 && previous !== undefined) {
    row.change = row.spread - previous;
    row.sinceMs = sinceAt! / 1_000;
  }
  row.spreads = [...earlier.map(([, spread]) => spread), ...row.spreads].slice(-SPREADS_MAX);
}
