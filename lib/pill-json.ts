import type { Pill } from '../schemas/pill.ts';
import { formatTimestamp } from '../schemas/timestamp.ts';

/** A pill as the ingest endpoint takes it: one JSON object with the six fields, on one line. */
export function pillJson(pill: Pill): string {
  return JSON.stringify({
    id: pill.id,
    timestamp: formatTimestamp(pill.timestamp),
    symbol: pill.symbol,
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
  });
}
