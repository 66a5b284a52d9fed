// Generated from the schemas of domain/webhooks/events:
// `npx vitest run deploy/sdk-types.test.ts -u` writes it.

import type { PublishedPill } from '../rest/responses.ts';

interface Event<Type extends string> {
  readonly type: Type;
  /** When it happened; for pills, when the platform received the oldest. UTC, six decimals. */
  readonly timestamp: string;
}

/** A pill that passes the filter of the endpoint was published. */
export interface PillPublished extends Event<'pill.published'> {
  readonly data: PublishedPill;
}

/**
 * Several such pills were joined in one body of at most 20 kB: they came faster than 50 a
 * second, they waited while the endpoint did not answer, or you asked for a replay (then
 * replayed is true). Endpoints that ask for pill.published get both types.
 */
export interface PillsPublished extends Event<'pills.published'> {
  readonly data: {
    readonly pills: readonly PublishedPill[];
    /** The owner of the endpoint asked for a replay; absent otherwise. */
    readonly replayed?: true;
  };
}

/**
 * The endpoint was created, its URL was changed, or a test was requested. Every endpoint
 * gets this event, whatever types it asks for.
 */
export interface EndpointTest extends Event<'endpoint.test'> {
  readonly data: {
    /** Id of the endpoint. */
    readonly endpoint: string;
    /** Text that the answer must contain. */
    readonly challenge: string;
  };
}

/**
 * 80, 95 or 100 % of the calls of a UTC day are used; once a day each. Webhooks cost no
 * calls.
 */
export interface QuotaWarning extends Event<'quota.warning'> {
  readonly data: {
    readonly policy: 'daily';
    readonly percent: 80 | 95 | 100;
    readonly used: number;
    readonly limit: number;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly resets_at: string;
  };
}

/**
 * A key expires in 7 days; once. Not for keys that are valid for less than 14 days, revoked,
 * or being rotated.
 */
export interface KeyExpiring extends Event<'key.expiring'> {
  readonly data: {
    /** Id of the key. */
    readonly key: string;
    /** The key as lists show it. */
    readonly hint: string;
    readonly name: string;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly expires_at: string;
  };
}

/**
 * The plan was bought, changed, cancelled, resumed, paid after it was due, or has ended, or
 * a lower tier was chosen for the next period. A mere renewal raises no event.
 */
export interface SubscriptionChanged extends Event<'subscription.changed'> {
  readonly data: {
    readonly tier: 'basic' | 'pro' | 'institutional';
    readonly status: 'active' | 'past_due' | 'ended';
    /** null = there was no subscription. */
    readonly previous_tier: 'basic' | 'pro' | 'institutional' | null;
    readonly previous_status: 'active' | 'past_due' | 'ended' | null;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly period_end: string;
    readonly cancel_at_period_end: boolean;
    /** the lower tier from period_end on; null = the same. */
    readonly next_tier: 'basic' | 'pro' | 'institutional' | null;
  };
}

/**
 * A payment was refused. You keep full access until access_ends_at, 7 days after the first
 * failure.
 */
export interface PaymentFailed extends Event<'payment.failed'> {
  readonly data: {
    readonly tier: 'basic' | 'pro' | 'institutional';
    /** Days until access ends. */
    readonly days_left: number;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly past_due_since: string;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly access_ends_at: string;
  };
}

/** A payment is still due: once on each of the days 1 to 6 after the failure. */
export interface PaymentReminder extends Event<'payment.reminder'> {
  readonly data: {
    readonly tier: 'basic' | 'pro' | 'institutional';
    /** Days until access ends. */
    readonly days_left: number;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly past_due_since: string;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly access_ends_at: string;
  };
}

/**
 * No delivery to an endpoint has succeeded since failing_since: sent at 50, 70 and 90 % of
 * the 76 hours until the endpoint is disabled, to your other endpoints and by mail.
 */
export interface EndpointFailing extends Event<'endpoint.failing'> {
  readonly data: {
    /** Id of the endpoint. */
    readonly endpoint: string;
    readonly url: string;
    /** HTTP status of the last attempt; null = there was no answer. */
    readonly last_status: number | null;
    /** Why the last attempt failed, in one word. */
    readonly last_reason: string | null;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly failing_since: string;
    readonly percent: 50 | 70 | 90;
    /** UTC with six decimals: 2026-11-20T01:02:03.011000Z. */
    readonly disabled_at: string;
  };
}

/**
 * An endpoint was disabled: after 76 hours without a success (failing), or at once because
 * it answered 410 (gone). Sent to your other endpoints and by mail.
 */
export interface EndpointDisabled extends Event<'endpoint.disabled'> {
  readonly data: {
    /** Id of the endpoint. */
    readonly endpoint: string;
    readonly url: string;
    /** HTTP status of the last attempt; null = there was no answer. */
    readonly last_status: number | null;
    /** Why the last attempt failed, in one word. */
    readonly last_reason: string | null;
    readonly reason: 'failing' | 'gone';
    readonly failing_since: string | null;
    /** The call that posts the missed messages again. */
    readonly recover: string;
  };
}

/**
 * A verified delivery; `type` is the name of its event. Later versions of the platform may add
 * types: the `default` branch of a `switch` receives them, as `UnknownWebhookEvent`.
 */
export type WebhookEvent =
  | PillPublished
  | PillsPublished
  | EndpointTest
  | QuotaWarning
  | KeyExpiring
  | SubscriptionChanged
  | PaymentFailed
  | PaymentReminder
  | EndpointFailing
  | EndpointDisabled;
