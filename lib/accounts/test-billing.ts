import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { TIER_NAMES, type Tier } from '../access/tiers.ts';
import type { Database } from '../postgres/database.ts';
import type { Requester } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import type { BillingEvent, BillingEventType, BillingProvider } from './billing-provider.ts';

/** Said wherever a customer meets this provider. */
export const NO_MONEY_MOVES = 'This is a test payment: no money moves.';

export const TEST_PROVIDER = 'test';

/** A signed message that is older or newer is refused: it may be a recording. */
const TOLERANCE_S = 5 * 60;
const TYPES: readonly BillingEventType[] = [
  'checkout.paid',
  'checkout.failed',
  'payment.succeeded',
  'payment.failed',
  'subscription.ended',
];

export interface TestBillingOptions {
  readonly pepper: Buffer;
  /** Address of the page that pays: the checkout's id is appended as `?checkout=`. */
  readonly pageUrl: string;
}

/** An event as it goes over the network. */
export interface SignedEvent {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

export interface TestBilling extends BillingProvider {
  /** Signs an event as of now, as the provider would send it. */
  sign(event: BillingEvent): SignedEvent;
}

/**
 * A billing provider that takes no money: a page says how a payment ends. Its events are signed as
 * Standard Webhooks are: HMAC-SHA-256 over `id.timestamp.body`, at most 5 minutes old.
 */
export function createTestBilling({ pepper, pageUrl }: TestBillingOptions): TestBilling {
  const secret = createHmac('sha256', pepper).update('test billing events').digest();
  const signatureOf = (id: string, timestamp: string, body: Buffer) =>
    createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
  const nothing = async () => undefined;
  return {
    name: TEST_PROVIDER,
    takesMoney: false,
    createCheckout: async ({ checkoutId }) => {
      const url = new URL(pageUrl);
      url.searchParams.set('checkout', checkoutId);
      return { url: url.href };
    },
    voidCheckout: nothing,
    changeTier: nothing,
    cancel: nothing,
    resume: nothing,
    parseEvent(rawBody, headers) {
      const [id, timestamp, signatures] = [
        headerOf(headers, 'webhook-id'),
        headerOf(headers, 'webhook-timestamp'),
        headerOf(headers, 'webhook-signature'),
      ];
      if (!/^\d{1,12}$/.test(timestamp)) return 'signature_invalid';
      if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_S) return 'signature_invalid';
      const expected = signatureOf(id, timestamp, rawBody);
      const signed = signatures.split(' ').some((text) => {
        const given = Buffer.from(text.startsWith('v1,') ? text.slice(3) : '', 'base64');
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
      return signed ? (readEvent(id, rawBody) ?? 'not_for_us') : 'signature_invalid';
    },
    sign(event) {
      const body = Buffer.from(JSON.stringify(event));
      const timestamp = String(Math.floor(Date.now() / 1000));
      const signature = signatureOf(event.eventId, timestamp, body).toString('base64');
      return {
        body,
        headers: {
          'content-type': 'application/json',
          'webhook-id': event.eventId,
          'webhook-timestamp': timestamp,
          'webhook-signature': `v1,${signature}`,
        },
      };
    },
  };
}

function headerOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

/** What was signed by us; undefined when it tells nothing that we know. */
function readEvent(id: string, body: Buffer): BillingEvent | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const fields = parsed as Readonly<Record<string, unknown>>;
  const text = (name: string) => (typeof fields[name] === 'string' ? fields[name] : undefined);
  const type = TYPES.find((known) => known === fields.type);
  const at = new Date(text('at') ?? Number.NaN);
  if (type === undefined || fields.eventId !== id || Number.isNaN(at.getTime())) return undefined;
  const periodEnd = new Date(text('periodEnd') ?? Number.NaN);
  return {
    provider: TEST_PROVIDER,
    eventId: id,
    type,
    checkoutId: text('checkoutId'),
    reference: text('reference'),
    accountId: text('accountId'),
    tier: TIER_NAMES.find((tier) => tier === fields.tier),
    periodEnd: Number.isNaN(periodEnd.getTime()) ? undefined : periodEnd,
    at,
  };
}

/** A checkout of the test provider, for its page. `void`: a newer one was begun. */
export interface TestCheckout {
  readonly tier: Tier;
  readonly status: 'open' | 'paid' | 'failed' | 'void' | 'expired';
}

/** undefined also when it is another account's. */
export async function readTestCheckout(
  db: Database,
  checkoutId: string,
  accountId: string,
): Promise<TestCheckout | undefined> {
  const row = await db
    .selectFrom('checkouts')
    .select(['tier', 'status', 'expires_at'])
    .where('id', '=', checkoutId)
    .where('account_id', '=', accountId)
    .where('provider', '=', TEST_PROVIDER)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const expired = row.status === 'open' && row.expires_at.getTime() <= Date.now();
  return { tier: row.tier, status: expired ? 'expired' : row.status };
}

/** undefined = no such checkout of this account. */
export type CheckoutPaid =
  | { readonly kind: 'ok' }
  /** It has ended before, and so it stays: begin another. */
  | { readonly kind: 'not_open'; readonly status: Exclude<TestCheckout['status'], 'open'> }
  | undefined;

/**
 * Ends a checkout of the test provider as its page asks for; no money moves. The same click twice
 * has effect once and is `ok` both times. What is answered is what the checkout has become.
 */
export async function payCheckout(
  db: Database,
  checkoutId: string,
  accountId: string,
  outcome: 'paid' | 'failed',
  requester?: Requester,
): Promise<CheckoutPaid> {
  let checkout = await readTestCheckout(db, checkoutId, accountId);
  if (checkout?.status === 'open') {
    const event: BillingEvent = {
      provider: TEST_PROVIDER,
      eventId: `${checkoutId}/${outcome}`,
      type: `checkout.${outcome}`,
      checkoutId,
      at: new Date(),
    };
    await applyBillingEvent(db, event, requester);
    checkout = await readTestCheckout(db, checkoutId, accountId);
  }
  if (checkout === undefined) return undefined;
  if (checkout.status === outcome) return { kind: 'ok' };
  // It expired between the two reads.
  const status = checkout.status === 'open' ? 'expired' : checkout.status;
  return { kind: 'not_open', status };
}
