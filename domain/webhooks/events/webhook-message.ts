import { formatCursor } from '../../../schemas/position.ts';
import { type LogPill, publicPillText } from '../../../schemas/public-pill.ts';
import { formatTimestamp, type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import { type MessageType, timeMembersOf } from './event-catalogue.ts';

/** A message for an endpoint: the same bytes at every attempt. */
export interface WebhookMessage {
  /** `webhook-id`. */
  readonly id: string;
  readonly type: MessageType;
  /** JSON. */
  readonly body: string;
  /** Number of pills; 0 = another event. */
  readonly pills: number;
  /** Receive time of its oldest pill, or the time of the event. */
  readonly occurredAt: Micros;
}

/** Upper bound of a body that joins pills. */
export const JOINED_BYTES_MAX = 20_000;
/** `{"type":"pills.published","timestamp":"…","data":{"pills":[]}}` */
const ENVELOPE_BYTES = 100;

/** A pill as messages carry it, encoded once for all endpoints. */
export interface PostedPill {
  readonly json: string;
  readonly bytes: number;
  readonly partition: number;
  readonly offset: number;
  readonly receivedAt: Micros;
}

export function postedPill(
  epoch: string,
  pill: LogPill & { readonly prev: number | null },
): PostedPill {
  const { partition, offset, prev } = pill;
  const json = publicPillText(pill, { epoch, prev });
  return { json, bytes: Buffer.byteLength(json), partition, offset, receivedAt: pill.received_at };
}

/**
 * A message of one pill. Its id follows from the position in the log, so that every resend, after any
 * crash, has the same id.
 */
export function pillMessage(epoch: string, pill: PostedPill): WebhookMessage {
  const timestamp = formatTimestamp(pill.receivedAt);
  return {
    id: `msg_${epoch}_${formatCursor(pill.partition, pill.offset)}`,
    type: 'pill.published',
    body: `{"type":"pill.published","timestamp":"${timestamp}","data":${pill.json}}`,
    pills: 1,
    occurredAt: pill.receivedAt,
  };
}

/** Several pills as one message, under an id that the caller stores. */
export function joinedMessage(
  id: string,
  pills: readonly PostedPill[],
  flags: { readonly replayed?: true } = {},
): WebhookMessage {
  const occurredAt = Math.min(...pills.map(({ receivedAt }) => receivedAt));
  const timestamp = formatTimestamp(occurredAt);
  const data = `{"pills":[${pills.map(({ json }) => json).join(',')}]${flags.replayed ? ',"replayed":true' : ''}}`;
  return {
    id,
    type: 'pills.published',
    occurredAt,
    body: `{"type":"pills.published","timestamp":"${timestamp}","data":${data}}`,
    pills: pills.length,
  };
}

/** How many of the first pills fit into one body; at least one. */
export function countFitting(pills: readonly PostedPill[]): number {
  let bytes = ENVELOPE_BYTES;
  for (const [at, pill] of pills.entries()) {
    bytes += pill.bytes + 1;
    if (bytes > JOINED_BYTES_MAX) return Math.max(1, at);
  }
  return pills.length;
}

/**
 * An event of an account. @param data as PostgreSQL stores it: JavaScript and SQL write times in
 * different forms there
 */
export function eventMessage(
  id: string,
  type: MessageType,
  data: Readonly<Record<string, unknown>>,
  occurredAt: Micros,
): WebhookMessage {
  const timestamp = formatTimestamp(occurredAt);
  const times = timeMembersOf(type).map((name) => [name, sixDecimals(data[name])]);
  const body = JSON.stringify({ type, timestamp, data: { ...data, ...Object.fromEntries(times) } });
  return { id, type, occurredAt, pills: 0, body };
}

function sixDecimals(time: unknown): unknown {
  const parsed = typeof time === 'string' ? parseTimestamp(time) : undefined;
  return parsed?.ok ? formatTimestamp(parsed.micros) : time;
}
