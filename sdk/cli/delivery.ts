import type { IncomingHttpHeaders } from 'node:http';
import {
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookVerificationCode,
  WebhookVerificationError,
} from '../webhook.ts';
import type { PublishedPill, WebhookEvent } from '../webhook-events.ts';
import { formatAge, printable } from './table.ts';

/** A delivery that came, and what is to be said of it. */
export interface Delivery {
  /** When it came. */
  readonly at: Date;
  readonly id: string | null;
  /** undefined = its body is no event. */
  readonly event: WebhookEvent | undefined;
  /** null = there is no secret to verify it with. */
  readonly isVerified: boolean | null;
  readonly fault?: { readonly code: WebhookVerificationCode; readonly message: string };
  /** One with its id was here before. */
  readonly isRepeat: boolean;
}

/** What became of a delivery. */
export interface Answered {
  readonly status: number;
  /** What the user should know of it. */
  readonly note?: string | undefined;
}

/** Reads deliveries, and remembers the newest ids of those that may be trusted. */
export interface Inspector {
  inspect(headers: IncomingHttpHeaders, body: Uint8Array): Promise<Delivery>;
}

/** Ids that are remembered; of an older one a repeat is not told. */
export const IDS_MAX = 1_000;

/** @param secrets empty = nothing is verified */
export function createInspector(
  secrets: readonly string[],
  options?: VerifyWebhookOptions,
): Inspector {
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
  return {
    async inspect(headers, body) {
      const at = new Date();
      const id = headers['webhook-id'];
      const seen = { at, id: typeof id === 'string' ? id : null };
      if (secrets.length === 0) {
        const event = readEvent(body);
        const repeat = event !== undefined && seen.id !== null && isRepeat(seen.id);
        return { ...seen, event, isVerified: null, isRepeat: repeat };
      }
      try {
        const event = await verifyWebhook(body, headers, secrets, options);
        return { ...seen, event, isVerified: true, isRepeat: isRepeat(seen.id ?? '') };
      } catch (error) {
        if (!(error instanceof WebhookVerificationError)) throw error;
        // Whoever forges a delivery must not make a true one look like a repeat.
        const event = readEvent(body);
        return { ...seen, event, isVerified: false, isRepeat: false, fault: error };
      }
    },
  };
}

/** What a body says, whoever sent it. */
function readEvent(body: Uint8Array): WebhookEvent | undefined {
  try {
    const event = JSON.parse(new TextDecoder().decode(body));
    return typeof event?.type === 'string' ? event : undefined;
  } catch {
    return undefined;
  }
}

/** The symbols of its pills, each once. */
export function symbolsOf(event: WebhookEvent | undefined): string[] {
  const data = event?.data as { pills?: unknown; symbol?: unknown } | null | undefined;
  const pills = Array.isArray(data?.pills) ? (data.pills as Partial<PublishedPill>[]) : [data];
  const symbols = pills.map((pill) => pill?.symbol).filter((symbol) => typeof symbol === 'string');
  return [...new Set(symbols)];
}

/** From what an event tells of to its coming here, ms; null where it does not say. */
function ageMs({ at, event }: Delivery): number | null {
  const age = at.getTime() - Date.parse(event?.timestamp ?? '');
  return Number.isNaN(age) ? null : age;
}

const SYMBOLS_SHOWN = 5;
const WIDTHS = [14, 22, 28, 9, 6, 13] as const;

/** The head of the lines. */
export const DELIVERY_HEAD: string = columns([
  ...['TIME (UTC)', 'TYPE', 'WEBHOOK-ID', 'AGE', 'ANSWER', 'SIGNATURE', 'SYMBOLS AND NOTES'],
]);

/** One line for people. */
export function deliveryLine(delivery: Delivery, { status, note }: Answered): string {
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

/** The same for programs. */
export function deliveryJson(delivery: Delivery, { status, note }: Answered): string {
  const { at, id, event, isVerified, isRepeat, fault } = delivery;
  return JSON.stringify({
    ...{ type: 'delivery', at: at.toISOString(), webhook_id: id, event: event ?? null },
    ...{ age_ms: ageMs(delivery), symbols: symbolsOf(event), verified: isVerified },
    ...(fault === undefined ? {} : { code: fault.code, reason: fault.message }),
    ...{ repeat: isRepeat, status },
    ...(note === undefined ? {} : { note }),
  });
}
