import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Database } from '../../lib/postgres/database.ts';
import { isSigned, type Pepper } from '../access/pepper.ts';
import { TIER_NAMES } from '../access/tiers.ts';
import type { Requester } from './audit.ts';
import { applyBillingEvent } from './billing.ts';
import {
  BILLING_EVENT_TYPES,
  type BillingEvent,
  type BillingProvider,
} from './billing-provider.ts';

/** Shown to customers wherever this provider is used. */
export const NO_MONEY_MOVES = 'This is a test payment: no money moves.';

export const TEST_PROVIDER = 'test';

/** A signed message that is older or newer may be a replay and is refused. */
const TOLERANCE_S = 5 * 60;

export type TestBilling = ReturnType<typeof createTestBilling>;

/**
 * A billing provider that takes no money: the outcome of a payment is chosen on a page. Its events are
 * signed like Standard Webhooks: HMAC-SHA-256 over `id.timestamp.body`, at most 5 minutes old.
 * @param options `pageUrl` is the payment page, to which `?checkout=<id>` is appended
 */
export function createTestBilling({
  pepper,
  pageUrl,
}: {
  readonly pepper: Pepper;
  readonly pageUrl: string;
}) {
  const signatureOf = (id: string, timestamp: string, body: Buffer) => (bytes: Buffer) => {
    const secret = createHmac('sha256', bytes).update('test billing events').digest();
    return createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
  };
  const nothing = async () => undefined;
  const provider: BillingProvider = {
    name: TEST_PROVIDER,
    takesMoney: false,
    createCheckout: async ({ checkoutId }) => {
      const url = new URL(pageUrl);
      url.searchParams.set('checkout', checkoutId);
      return { url: url.href };
    },
    voidCheckout: nothing,
    scheduleTier: nothing,
    cancel: nothing,
    resume: nothing,
    parseEvent(rawBody, headers) {
      const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
        headerOf(headers, `webhook-${name}`),
      ) as [string, string, string];
      if (!/^\d{1,12}$/.test(timestamp)) return 'signature_invalid';
      if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_S) return 'signature_invalid';
      const sign = signatureOf(id, timestamp, rawBody);
      const signed = signatures.split(' ').some((text) => {
        const given = Buffer.from(text.startsWith('v1,') ? text.slice(3) : '', 'base64');
        return isSigned(pepper, given, sign);
      });
      return signed ? (readEvent(id, rawBody) ?? 'not_for_us') : 'signature_invalid';
    },
  };
  return {
    ...provider,
    /** Signs an event with the present time, as the provider would send it. */
    sign(event: BillingEvent) {
      const body = Buffer.from(JSON.stringify(event));
      const timestamp = String(Math.floor(Date.now() / 1000));
      const { bytes } = pepper.current();
      const signature = signatureOf(event.eventId, timestamp, body)(bytes).toString('base64');
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

/** Parses a signed event; undefined if its content is unknown. */
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
  const type = BILLING_EVENT_TYPES.find((known) => known === fields.type);
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

/** Reads a checkout for its page; undefined also for another account's. */
export async function readTestCheckout(db: Database, checkoutId: string, accountId: string) {
  const row = await db
    .selectFrom('checkouts')
    .select(['tier', 'status', 'expires_at'])
    .where('id', '=', checkoutId)
    .where('account_id', '=', accountId)
    .where('provider', '=', TEST_PROVIDER)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const expired = row.status === 'open' && row.expires_at.getTime() <= Date.now();
  return { tier: row.tier, status: expired ? ('expired' as const) : row.status };
}

/**
 * Ends a checkout of the test provider with the outcome chosen on its page; no money moves. Idempotent:
 * a repeated click is `ok` again.
 * @returns `not_open` = the checkout ended differently, so begin another; undefined = the account has
 * no such checkout
 */
export async function payCheckout(
  db: Database,
  checkoutId: string,
  accountId: string,
  outcome: 'paid' | 'failed',
  requester?: Requester,
) {
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
  if (checkout.status === outcome) return { kind: 'ok' as const };
  // An open checkout has expired between the two reads.
  const status = checkout.status === 'open' ? 'expired' : checkout.status;
  return { kind: 'not_open' as const, status };
}
