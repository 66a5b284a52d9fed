import type { IncomingHttpHeaders } from 'node:http';
import type { Tier } from '../access/tiers.ts';

/** A subscription at its provider. */
export interface BilledSubscription {
  readonly accountId: string;
  /** The provider's id of the subscription. */
  readonly reference: string;
}

/** A payment provider. Methods throw the errors of its API; then nothing has changed. */
export interface BillingProvider {
  /** As stored in rows: `test`, `stripe`. */
  readonly name: string;
  /** false = no money moves, and pages say so. */
  readonly takesMoney: boolean;
  /** Begins a payment of this amount. @returns the page where the customer pays */
  createCheckout(checkout: {
    readonly accountId: string;
    readonly tier: Tier;
    readonly checkoutId: string;
    readonly amountCents: number;
    readonly currency: 'USD';
    /** The subscription that the payment upgrades; undefined = a new one. */
    readonly upgrades?: string | undefined;
    /** Where the page sends the customer afterwards. */
    readonly returnUrl: string;
  }): Promise<{ readonly url: string }>;
  /** Ends a checkout that must no longer be paid; no effect on one that has ended. */
  voidCheckout(checkoutId: string): Promise<void>;
  /** Sets the tier of the periods after the present one; with the present tier, undoes that. */
  scheduleTier(subscription: BilledSubscription, tier: Tier): Promise<void>;
  cancel(subscription: BilledSubscription, at: 'period_end' | 'now'): Promise<void>;
  /** Withdraws a cancellation at the period's end. */
  resume(subscription: BilledSubscription): Promise<void>;
  /**
   * Verifies and parses an event from the network.
   * @param rawBody as received, because the signature covers it
   * @returns `not_for_us` = the signature is valid, but the event has no meaning here: answer 200, or
   * the provider keeps sending it
   */
  parseEvent(
    rawBody: Buffer,
    headers: IncomingHttpHeaders,
  ): BillingEvent | 'signature_invalid' | 'not_for_us';
}

export const BILLING_EVENT_TYPES = [
  'checkout.paid',
  'checkout.failed',
  'payment.succeeded',
  'payment.failed',
  'subscription.ended',
] as const;

/** An event of a provider. The first given one of checkout, reference and account identifies it. */
export interface BillingEvent {
  readonly provider: string;
  /** The provider's id of the event; each id has effect once. */
  readonly eventId: string;
  readonly type: (typeof BILLING_EVENT_TYPES)[number];
  /** Our id of the checkout, for `checkout.*`. */
  readonly checkoutId?: string | undefined;
  /** The provider's id of the subscription. */
  readonly reference?: string | undefined;
  readonly accountId?: string | undefined;
  /** The tier that was paid for; undefined = the present tier. */
  readonly tier?: Tier | undefined;
  /** End of the paid period; undefined = 30 days from `at`. */
  readonly periodEnd?: Date | undefined;
  /** When it happened at the provider. */
  readonly at: Date;
}
