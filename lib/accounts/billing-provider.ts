import type { IncomingHttpHeaders } from 'node:http';
import type { Tier } from '../access/tiers.ts';

/** A subscription at its provider. */
export interface BilledSubscription {
  readonly accountId: string;
  /** The provider's id of it. */
  readonly reference: string;
}

/** Where money is taken. Methods throw what the provider's API says; then nothing has changed. */
export interface BillingProvider {
  /** As in the rows: `test`, `stripe`. */
  readonly name: string;
  /** false = no money moves, and pages say so. */
  readonly takesMoney: boolean;
  /** Begins a payment. @returns the page where the customer pays */
  createCheckout(checkout: {
    readonly accountId: string;
    readonly tier: Tier;
    readonly checkoutId: string;
    /** Where the page leads back to. */
    readonly returnUrl: string;
  }): Promise<{ readonly url: string }>;
  /** Ends a checkout that must not be paid any more; one that has ended stays as it is. */
  voidCheckout(checkoutId: string): Promise<void>;
  changeTier(subscription: BilledSubscription, tier: Tier): Promise<void>;
  cancel(subscription: BilledSubscription, at: 'period_end' | 'now'): Promise<void>;
  /** Takes back a cancellation to the period's end. */
  resume(subscription: BilledSubscription): Promise<void>;
  /**
   * Reads an event that came over the network. @param rawBody as received: the signature is over it
   * @returns `not_for_us` = signed well, but of no meaning here: answer 200, or it comes for ever
   */
  parseEvent(
    rawBody: Buffer,
    headers: IncomingHttpHeaders,
  ): BillingEvent | 'signature_invalid' | 'not_for_us';
}

export type BillingEventType =
  | 'checkout.paid'
  | 'checkout.failed'
  | 'payment.succeeded'
  | 'payment.failed'
  | 'subscription.ended';

/** What a provider tells. Of checkout, reference and account the first that is given decides. */
export interface BillingEvent {
  readonly provider: string;
  /** The provider's id of it; the same id has effect once. */
  readonly eventId: string;
  readonly type: BillingEventType;
  /** Ours, of `checkout.*`. */
  readonly checkoutId?: string | undefined;
  /** The provider's id of the subscription. */
  readonly reference?: string | undefined;
  readonly accountId?: string | undefined;
  /** Tier that was paid; undefined = the one it was. */
  readonly tier?: Tier | undefined;
  /** Paid until then; undefined = 30 days from `at`. */
  readonly periodEnd?: Date | undefined;
  /** When it happened at the provider. */
  readonly at: Date;
}
