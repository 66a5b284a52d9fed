import type { Pill, SnapshotPill } from '../rest/responses.ts';
import { offsetOf, parseCursor } from './stream-position.ts';

/** The last pill of one symbol. */
interface Chain {
  /** Cursor that the `prev` of the next pill must name. */
  cursor: string;
  partition: number;
  /** Offset of `cursor`: a live pill at or below it is a duplicate. */
  offset: number;
  /** Offset of the last delivered pill; -1 if only a snapshot was delivered. */
  delivered: number;
  /** `delivered` as it was when the connection number `connection` began. */
  deliveredBefore: number;
  connection: number;
}

export type SymbolChains = ReturnType<typeof createSymbolChains>;

/**
 * The last delivered pill of each symbol, to drop duplicates and to detect a broken chain of
 * `prev`. One entry per symbol; the platform has at most 100,000 symbols.
 */
export function createSymbolChains() {
  const chains = new Map<string, Chain>();
  let currentEpoch: string | undefined;
  let connection = 0;

  const advance = (symbol: string, cursor: string): Chain | undefined => {
    const at = parseCursor(cursor);
    if (at === undefined) return undefined;
    let chain = chains.get(symbol);
    if (chain === undefined) {
      chain = { cursor, ...at, delivered: -1, deliveredBefore: -1, connection };
      chains.set(symbol, chain);
    }
    if (chain.connection !== connection) {
      chain.connection = connection;
      chain.deliveredBefore = chain.delivered;
    }
    if (at.offset >= chain.offset) Object.assign(chain, { cursor, ...at });
    return chain;
  };
  const isUpTo = ({ symbol, cursor }: Pill, limit: 'offset' | 'delivered') => {
    const chain = chains.get(symbol);
    const at = parseCursor(cursor);
    if (chain === undefined || at === undefined) return false;
    return at.partition === chain.partition && at.offset <= chain[limit];
  };

  return {
    /** Whether the pill was delivered, or is covered by a snapshot. */
    isDuplicate: (pill: Pill): boolean => isUpTo(pill, 'offset'),
    /** Whether the pill was delivered; snapshots do not count, since they contain no backfill. */
    wasDelivered: (pill: Pill): boolean => isUpTo(pill, 'delivered'),
    /** @returns the cursor after which pills are missing, if `prev` shows that some are */
    brokenAfter({ symbol, prev }: Pill): string | undefined {
      const cursor = chains.get(symbol)?.cursor;
      return cursor === undefined || prev === null || prev === cursor ? undefined : cursor;
    },
    /** Cursor of the last known pill of a symbol. */
    lastCursor: (symbol: string): string | undefined => chains.get(symbol)?.cursor,
    /** Records a delivered pill; an older pill of a fill does not move the chain back. */
    addPill({ symbol, cursor }: Pill): void {
      const chain = advance(symbol, cursor);
      if (chain !== undefined) chain.delivered = Math.max(chain.delivered, offsetOf(cursor));
    },
    /** Records a pill of a snapshot: the next pill follows its `last_cursor`. */
    addSnapshot({ symbol, cursor, last_cursor }: SnapshotPill): void {
      advance(symbol, last_cursor ?? cursor);
    },
    /** Highest offset of a symbol that connections before the current one delivered. */
    deliveredBefore(symbol: string): number {
      const chain = chains.get(symbol);
      if (chain === undefined) return -1;
      return chain.connection === connection ? chain.deliveredBefore : chain.delivered;
    },
    /** Forgets all pills: their offsets will be those of other pills. */
    clear: (): void => chains.clear(),
    /** Begins another connection. @param epoch of its log; another epoch clears all chains */
    beginConnection(epoch: string): void {
      connection += 1;
      if (currentEpoch !== undefined && currentEpoch !== epoch) chains.clear();
      currentEpoch = epoch;
    },
  };
}
