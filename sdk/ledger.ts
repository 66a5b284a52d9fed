import type { Pill, SnapshotPill } from './pill.ts';
import { parseCursor } from './position.ts';

/** What was handed over of one symbol. */
interface Entry {
  /** Cursor that the `prev` of the next pill must name. */
  chain: string;
  partition: number;
  /** Offset of `chain`: no live pill at or below it is new. */
  offset: number;
  /** Offset of the last pill handed over; -1: none, only a snapshot was. */
  handed: number;
  /** The same, as it was when the connection `connection` began. */
  handedBefore: number;
  connection: number;
}

/**
 * Remembers, by symbol, the last pill handed over: so that none is doubled, and that a break of
 * `prev` is seen. One entry a symbol; the platform holds at most 100,000.
 */
export interface Ledger {
  /** Was it handed over already? */
  isDouble(pill: Pill): boolean;
  /** The same without what a snapshot covers: it shows no backfill. */
  wasHanded(pill: Pill): boolean;
  /** @returns the cursor after which pills are missing, when `prev` says that some are */
  brokenAfter(pill: Pill): string | undefined;
  /** Cursor of the last one known of a symbol. */
  lastOf(symbol: string): string | undefined;
  /** A pill is handed over; one of a fill leaves the chain where that is further. */
  hand(pill: Pill): void;
  /** A snapshot was: the next pill follows its `last_cursor`. */
  show(pill: SnapshotPill): void;
  /** Highest offset that a connection before this one handed over of a symbol's partition. */
  handedBefore(symbol: string): number;
  /** Another connection begins. @param epoch of its log; of another one nothing is known */
  begin(epoch: string): void;
}

export function createLedger(): Ledger {
  const entries = new Map<string, Entry>();
  let epochNow: string | undefined;
  let connection = 0;

  const advance = (symbol: string, cursor: string): Entry | undefined => {
    const at = parseCursor(cursor);
    if (at === undefined) return undefined;
    let entry = entries.get(symbol);
    if (entry === undefined) {
      entry = { chain: cursor, ...at, handed: -1, handedBefore: -1, connection };
      entries.set(symbol, entry);
    }
    if (entry.connection !== connection) {
      entry.connection = connection;
      entry.handedBefore = entry.handed;
    }
    if (at.offset >= entry.offset) {
      entry.chain = cursor;
      entry.partition = at.partition;
      entry.offset = at.offset;
    }
    return entry;
  };
  const hand = (pill: Pill) => {
    const entry = advance(pill.symbol, pill.cursor);
    const offset = parseCursor(pill.cursor)?.offset ?? -1;
    if (entry !== undefined && offset > entry.handed) entry.handed = offset;
  };

  return {
    isDouble({ symbol, cursor }) {
      const entry = entries.get(symbol);
      const at = parseCursor(cursor);
      if (entry === undefined || at === undefined) return false;
      return at.partition === entry.partition && at.offset <= entry.offset;
    },
    wasHanded({ symbol, cursor }) {
      const entry = entries.get(symbol);
      const at = parseCursor(cursor);
      if (entry === undefined || at === undefined) return false;
      return at.partition === entry.partition && at.offset <= entry.handed;
    },
    brokenAfter({ symbol, prev }) {
      const chain = entries.get(symbol)?.chain;
      return chain === undefined || prev === null || prev === chain ? undefined : chain;
    },
    lastOf: (symbol) => entries.get(symbol)?.chain,
    hand,
    show(pill) {
      advance(pill.symbol, pill.last_cursor ?? pill.cursor);
    },
    handedBefore(symbol) {
      const entry = entries.get(symbol);
      if (entry === undefined) return -1;
      return entry.connection === connection ? entry.handedBefore : entry.handed;
    },
    begin(epoch) {
      connection += 1;
      if (epochNow !== undefined && epochNow !== epoch) entries.clear();
      epochNow = epoch;
    },
  };
}
