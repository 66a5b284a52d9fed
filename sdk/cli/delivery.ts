import type { IncomingHttpHeaders } from 'node:http';
import type { PublishedPill } from '../rest/responses.ts';
import {
  verifyWebhook,
  type WebhookVerificationCode,
  WebhookVerificationError,
} from '../webhooks/verify-webhook.ts';
import type { WebhookEvent } from '../webhooks/webhook-events.ts';
import { formatAge, printable } from './text-table.ts';

/** A received delivery. */
export interface Delivery {
  /** When it was received. */
  readonly at: Date;
  readonly id: string | null;
  /** undefined: the body is not an event. */
  readonly event: WebhookEvent | undefined;
  /** null: there is no secret to verify it with. */
  readonly isVerified: boolean | null;
  readonly fault?: { readonly code: WebhookVerificationCode; readonly message: string };
  /** A delivery with the same id was received before. */
  readonly isRepeat: boolean;
}

/** How a delivery was answered. */
export interface DeliveryAnswer {
  readonly status: number;
  /** Printed at the end of the delivery's line. */
  readonly note?: string | undefined;
}

/** Ids that are remembered; a repeat of an older one is not detected. */
const IDS_MAX = 1_000;

/**
 * Creates a function that verifies deliveries and remembers their ids, except for deliveries that
 * fail verification. @param secrets empty: nothing is verified
 */
export function createInspector(
  secrets: readonly string[],
): (headers: IncomingHttpHeaders, body: Uint8Array) => Promise<Delivery> {
  const ids = new Set<string>();
  const isRepeat = (id: string): boolean => {
    if (ids.has(id)) return true;
    ids.add(id);
    for (const oldest of ids) {
      if (ids.size <= IDS_MAX) break;
      ids.delete(oldest);
    }
    return false;
  };
  return async (headers, body) => {
    const at = new Date();
    const header = headers['webhook-id'];
    const id = typeof header === 'string' ? header : null;
    if (secrets.length === 0) {
      const event = readEvent(body);
      const repeat = event !== undefined && id !== null && isRepeat(id);
      return { at, id, event, isVerified: null, isRepeat: repeat };
    }
    try {
      const event = await verifyWebhook(body, headers, secrets);
      return { at, id, event, isVerified: true, isRepeat: isRepeat(id ?? '') };
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      // A forged delivery must not make a genuine one look like a repeat.
      return { at, id, event: readEvent(body), isVerified: false, isRepeat: false, fault: error };
    }
  };
}

/** The event of a body, verified or not. */
function readEvent(body: Uint8Array): WebhookEvent | undefined {
  try {
    const event = JSON.parse(new TextDecoder().decode(body));
    return typeof event?.type === 'string' ? event : undefined;
  } catch {
    return undefined;
  }
}

/** The symbols of an event's pills, each once. */
function symbolsOf(event: WebhookEvent | undefined): string[] {
  const data = event?.data as { pills?: unknown; symbol?: unknown } | null | undefined;
  const pills = Array.isArray(data?.pills) ? (data.pills as Partial<PublishedPill>[]) : [data];
  const symbols = pills.map((pill) => pill?.symbol).filter((symbol) => typeof symbol === 'string');
  return [...new Set(symbols)];
}

/** ms from the event's timestamp to its receipt; null if it has no timestamp. */
function ageMs({ at, event }: Delivery): number | null {
  const age = at.getTime() - Date.parse(event?.timestamp ?? '');
  return Number.isNaN(age) ? null : age;
}

const SYMBOLS_SHOWN = 5;
const WIDTHS = [14, 22, 28, 9, 6, 13] as const;

/** The head above the lines of deliveries. */
export const DELIVERY_HEAD: string = columns(
  'TIME (UTC),TYPE,WEBHOOK-ID,AGE,ANSWER,SIGNATURE,SYMBOLS AND NOTES'.split(','),
);

/** A delivery as a line for people. */
export function deliveryLine(delivery: Delivery, { status, note }: DeliveryAnswer): string {
  const { at, id, event, isVerified, isRepeat, fault } = delivery;
  const symbols = symbolsOf(event);
  const more = symbols.length - SYMBOLS_SHOWN;
  const age = ageMs(delivery);
  return columns([
    at.toISOString().slice(11, 23),
    event?.type ?? '?',
    id ?? '?',
    age === null ? '?' : formatAge(age),
    String(status),
    isVerified === null ? 'not checked' : isVerified ? 'verified' : 'NOT VERIFIED',
    [
      isRepeat ? 'REPEAT' : '',
      symbols.slice(0, SYMBOLS_SHOWN).join(' '),
      more > 0 ? `and ${more} more` : '',
      fault === undefined ? '' : `${fault.code}: ${fault.message}`,
      note ?? '',
    ]
      .filter(Boolean)
      .join(' '),
  ]);
}

function columns(cells: readonly string[]): string {
  return cells
    .map((cell, at) => printable(cell).padEnd(WIDTHS[at] ?? 0))
    .join('  ')
    .trimEnd();
}

/** A delivery as a line of JSON for programs. */
export function deliveryJson(delivery: Delivery, { status, note }: DeliveryAnswer): string {
  const { at, id, event, isVerified, isRepeat, fault } = delivery;
  return JSON.stringify({
    type: 'delivery',
    at: at.toISOString(),
    webhook_id: id,
    event: event ?? null,
    age_ms: ageMs(delivery),
    symbols: symbolsOf(event),
    verified: isVerified,
    ...(fault === undefined ? {} : { code: fault.code, reason: fault.message }),
    repeat: isRepeat,
    status,
    ...(note === undefined ? {} : { note }),
  });
}
