import { formatCursor } from '../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';
import type { EffectivePill } from '../order/judge.ts';
import type { MessageType } from './event-types.ts';

/** What is posted to an endpoint, the same bytes at every attempt. */
export interface WebhookMessage {
  /** `webhook-id`. */
  readonly id: string;
  readonly type: MessageType;
  /** JSON. */
  readonly body: string;
  /** How many pills it carries; 0 = another event. */
  readonly pills: number;
  /** Receive time of its oldest pill, or the time of the event. */
  readonly occurredAt: Micros;
}

/** A body that joins pills is no longer than this. */
export const JOINED_BYTES_MAX = 20_000;
/** `{"type":"pills.published","timestamp":"…","data":{"pills":[]}}` */
const ENVELOPE_BYTES = 100;

/** A pill as messages carry it, encoded once for all endpoints. */
export interface PillText {
  readonly json: string;
  readonly bytes: number;
  readonly partition: number;
  readonly offset: number;
  readonly receivedAt: Micros;
}

/** What is posted of a pill: fields that clients of streams know, with the epoch of its cursor. */
export type PostedPill = Pick<
  EffectivePill,
  | 'partition'
  | 'offset'
  | 'prev'
  | 'id'
  | 'timestamp'
  | 'symbol'
  | 'gross_spread_percent'
  | 'market_state'
  | 'confidence'
  | 'received_at'
  | 'late'
  | 'backfill'
>;

/** Encodes a pill. */
export function pillText(epoch: string, pill: PostedPill): PillText {
  const { partition, offset } = pill;
  const json = JSON.stringify({
    epoch,
    cursor: formatCursor(partition, offset),
    prev: pill.prev === null ? null : formatCursor(partition, pill.prev),
    id: pill.id,
    timestamp: formatTimestamp(pill.timestamp),
    symbol: pill.symbol,
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
    received_at: formatTimestamp(pill.received_at),
    ...(pill.late ? { late: true } : {}),
    ...(pill.backfill ? { backfill: true } : {}),
  });
  return { json, bytes: Buffer.byteLength(json), partition, offset, receivedAt: pill.received_at };
}

/**
 * One pill alone. Its id follows from its place in the log: whoever sends it again, after whatever
 * crash, sends the same.
 */
export function pillMessage(epoch: string, pill: PillText): WebhookMessage {
  const timestamp = formatTimestamp(pill.receivedAt);
  return {
    id: `msg_${epoch}_${formatCursor(pill.partition, pill.offset)}`,
    type: 'pill.published',
    body: `{"type":"pill.published","timestamp":"${timestamp}","data":${pill.json}}`,
    pills: 1,
    occurredAt: pill.receivedAt,
  };
}

/** Several pills as one message, under an id that its maker keeps. */
export function joinedMessage(
  id: string,
  pills: readonly PillText[],
  flags: { readonly replayed?: true } = {},
): WebhookMessage {
  const occurredAt = Math.min(...pills.map(({ receivedAt }) => receivedAt));
  const timestamp = formatTimestamp(occurredAt);
  const data = `{"pills":[${pills.map(({ json }) => json).join(',')}]${flags.replayed ? ',"replayed":true' : ''}}`;
  return {
    ...{ id, type: 'pills.published', occurredAt },
    body: `{"type":"pills.published","timestamp":"${timestamp}","data":${data}}`,
    pills: pills.length,
  };
}

/** How many of the pills, from the first on, fit into one body; at least one. */
export function joinedFit(pills: readonly PillText[]): number {
  let bytes = ENVELOPE_BYTES;
  for (const [at, pill] of pills.entries()) {
    bytes += pill.bytes + 1;
    if (bytes > JOINED_BYTES_MAX) return Math.max(1, at);
  }
  return pills.length;
}

/** An event of an account. */
export function eventMessage(
  id: string,
  type: MessageType,
  data: object,
  occurredAt: Micros,
): WebhookMessage {
  const timestamp = formatTimestamp(occurredAt);
  return { ...{ id, type, occurredAt, pills: 0 }, body: JSON.stringify({ type, timestamp, data }) };
}
