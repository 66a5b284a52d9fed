import type { createMarket } from '../market/symbol-rows.ts';
import type { MarketReads } from './market-reads.ts';

/** Symbols of one request. */
const SYMBOLS_MAX = 100;
const CHECK_MS = 1_000;
/** After a failure, and after a read of venues whose state should have changed. */
const RETRY_MS = 10_000;

/**
 * Reads names, venues and earlier spreads of new symbols, and the state of a venue when it changes.
 * One request at a time.
 * @param reads undefined while the page is not connected
 * @returns ends it
 */
export function followFacts(
  market: ReturnType<typeof createMarket>,
  reads: () => MarketReads | undefined,
  onChange: () => void,
): () => void {
  const stop = new AbortController();
  let isReading = false;
  let notBeforeMs = 0;
  const read = async () => {
    const now = Date.now();
    const { unread } = market;
    const isNew = unread.size > 0;
    const due = isNew ? [...unread].slice(0, SYMBOLS_MAX) : symbolsOfDueVenues(market);
    const from = reads();
    if (isReading || due.length === 0 || from === undefined || now < notBeforeMs) return;
    isReading = true;
    if (!isNew) notBeforeMs = now + RETRY_MS;
    try {
      const { symbols, venues } = await from.market(due, stop.signal);
      for (const [code, venue] of Object.entries(venues)) market.setVenue(code, venue);
      for (const symbol of due) {
        market.addFacts(symbol, symbols[symbol] ?? { name: null, venue: null, spreads: [] });
      }
    } catch {
      // The table works without; the next attempt follows.
      notBeforeMs = now + RETRY_MS;
    }
    isReading = false;
    if (stop.signal.aborted) return;
    onChange();
    if (unread.size > 0) void read();
  };
  const timer = setInterval(() => void read(), CHECK_MS);
  return () => {
    clearInterval(timer);
    stop.abort();
  };
}

/** One symbol of each venue whose state has changed since it was read. */
function symbolsOfDueVenues({ rows, venues }: ReturnType<typeof createMarket>): string[] {
  const due = new Map<string, string>();
  const now = Date.now();
  const isDue = ({ changes_at }: { changes_at: string | null }) =>
    changes_at !== null && Date.parse(changes_at) <= now;
  if (![...venues.values()].some(isDue)) return [];
  for (const { symbol, venue = '' } of rows.values()) {
    const known = venues.get(venue);
    if (known !== undefined && isDue(known)) due.set(venue, symbol);
  }
  return [...due.values()];
}
