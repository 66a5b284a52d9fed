import type { Pill } from './pill.ts';
import { formatCursor } from './position.ts';
import { formatTimestamp, type Micros } from './timestamp.ts';

/** A pill in the log, as far as its public form shows it. */
export interface LogPill extends Pill {
  readonly partition: number;
  readonly offset: number;
  readonly received_at: Micros;
  readonly late?: boolean;
  readonly backfill: boolean;
}

/** Members that only some channels state; undefined ones are left out. */
export interface PillContext {
  /** Stated wherever the log of the cursors is not stated once for all pills. */
  readonly epoch?: string;
  /** Offset of the symbol's last live pill, in snapshots only. */
  readonly last?: number | null;
  /** Offset of the symbol's previous live pill; null leaves the chain open. */
  readonly prev?: number | null;
}

/** The public form of a pill, in every channel. Flags are present only when set. */
export interface PublicPill {
  readonly epoch?: string;
  readonly cursor: string;
  readonly last_cursor?: string | null;
  readonly prev?: string | null;
  readonly id: string;
  readonly timestamp: string;
  readonly symbol: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
  readonly received_at: string;
  readonly late?: true;
  readonly backfill?: true;
}

/** The pill that the documents of all channels show. */
export const PUBLIC_PILL_EXAMPLE = {
  cursor: '3-132',
  prev: '3-131',
  id: 'p-10',
  timestamp: '2026-11-20T01:02:03.004000Z',
  symbol: '7203.T',
  gross_spread_percent: 0.1261,
  market_state: 'open',
  confidence: 88,
  received_at: '2026-11-20T01:02:03.011000Z',
} satisfies PublicPill;

/** Renders a pill as an object. Members are assigned: spreading them took twice as long. */
export function publicPill(pill: LogPill, { epoch, last, prev }: PillContext): PublicPill {
  const { partition } = pill;
  const cursor = (offset: number | null) =>
    offset === null ? null : formatCursor(partition, offset);
  const body: { -readonly [Name in keyof PublicPill]?: PublicPill[Name] } = {};
  if (epoch !== undefined) body.epoch = epoch;
  body.cursor = formatCursor(partition, pill.offset);
  if (last !== undefined) body.last_cursor = cursor(last);
  if (prev !== undefined) body.prev = cursor(prev);
  body.id = pill.id;
  body.timestamp = formatTimestamp(pill.timestamp);
  body.symbol = pill.symbol;
  body.gross_spread_percent = pill.gross_spread_percent;
  body.market_state = pill.market_state;
  body.confidence = pill.confidence;
  body.received_at = formatTimestamp(pill.received_at);
  if (pill.late) body.late = true;
  if (pill.backfill) body.backfill = true;
  return body as PublicPill;
}

/**
 * Renders a pill as JSON, equal to `JSON.stringify(publicPill(pill, context))`. It is written by
 * hand because every pill of the stream and of webhooks passes here: 1.6 times as fast.
 */
export function publicPillText(pill: LogPill, { epoch, last, prev }: PillContext): string {
  const { partition } = pill;
  // The alphabet of symbols needs no escapes; String() of a finite number is its JSON form.
  return (
    `{${epoch === undefined ? '' : `"epoch":"${epoch}",`}` +
    `"cursor":"${formatCursor(partition, pill.offset)}",` +
    `${last === undefined ? '' : `"last_cursor":${cursorText(partition, last)},`}` +
    `${prev === undefined ? '' : `"prev":${cursorText(partition, prev)},`}` +
    `"id":${JSON.stringify(pill.id)},"timestamp":"${formatTimestamp(pill.timestamp)}",` +
    `"symbol":"${pill.symbol}","gross_spread_percent":${pill.gross_spread_percent},` +
    `"market_state":${JSON.stringify(pill.market_state)},"confidence":${pill.confidence},` +
    `"received_at":"${formatTimestamp(pill.received_at)}"` +
    `${pill.late ? ',"late":true' : ''}${pill.backfill ? ',"backfill":true' : ''}}`
  );
}

function cursorText(partition: number, offset: number | null): string {
  return offset === null ? 'null' : `"${formatCursor(partition, offset)}"`;
}

/** A pill as the ingest endpoint accepts it: one JSON object with the six fields, on one line. */
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
