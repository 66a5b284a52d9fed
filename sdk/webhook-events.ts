import type { Pill } from './pill.ts';

/** A pill as webhooks carry it: with the epoch that its cursor belongs to. */
export interface PublishedPill extends Omit<Pill, 'sent_at' | 'skipped' | 'replayed'> {
  readonly epoch: string;
}

/** One pill that passed the endpoint's filter. */
export interface PillPublished extends Envelope<'pill.published'> {
  readonly data: PublishedPill;
}

/** Several of them: joined above 50 messages a second, or handed over again by a replay. */
export interface PillsPublished extends Envelope<'pills.published'> {
  readonly data: {
    readonly pills: readonly PublishedPill[];
    /** They were posted before, or should have been: their owner asked for them again. */
    readonly replayed?: true;
  };
}

/** To be answered with a 2xx whose body contains `challenge`. */
export interface EndpointTest extends Envelope<'endpoint.test'> {
  readonly data: { readonly endpoint: string; readonly challenge: string };
}

export interface QuotaWarning extends Envelope<'quota.warning'> {
  readonly data: {
    readonly policy: 'daily';
    readonly percent: 80 | 95 | 100;
    readonly used: number;
    readonly limit: number;
    readonly resets_at: string;
  };
}

export interface KeyExpiring extends Envelope<'key.expiring'> {
  readonly data: {
    readonly key: string;
    /** Its first and last characters, as lists of keys show it. */
    readonly hint: string;
    readonly name: string;
    readonly expires_at: string;
  };
}

type Tier = 'basic' | 'pro' | 'institutional';
type SubscriptionStatus = 'active' | 'past_due' | 'ended';

export interface SubscriptionChanged extends Envelope<'subscription.changed'> {
  readonly data: {
    readonly tier: Tier;
    readonly status: SubscriptionStatus;
    /** null = there was no subscription before. */
    readonly previous_tier: Tier | null;
    readonly previous_status: SubscriptionStatus | null;
    readonly period_end: string;
    readonly cancel_at_period_end: boolean;
  };
}

interface PaymentDue {
  readonly tier: Tier;
  readonly past_due_since: string;
  readonly access_ends_at: string;
  readonly days_left: number;
}

export interface PaymentFailed extends Envelope<'payment.failed'> {
  readonly data: PaymentDue;
}

export interface PaymentReminder extends Envelope<'payment.reminder'> {
  readonly data: PaymentDue;
}

/** What the last attempt at an endpoint came to. */
interface LastAttempt {
  readonly endpoint: string;
  readonly url: string;
  /** HTTP status; null = no answer came. */
  readonly last_status: number | null;
  readonly last_reason: string | null;
}

export interface EndpointFailing extends Envelope<'endpoint.failing'> {
  readonly data: LastAttempt & {
    readonly failing_since: string;
    /** Of the time until it is disabled. */
    readonly percent: 50 | 70 | 90;
    readonly disabled_at: string;
  };
}

export interface EndpointDisabled extends Envelope<'endpoint.disabled'> {
  readonly data: LastAttempt & {
    readonly reason: 'failing' | 'gone';
    readonly failing_since: string | null;
    /** The call that sends again what was missed. */
    readonly recover: string;
  };
}

/**
 * A verified delivery, told apart by `type`. Types that later versions of the platform add come as
 * well: the `default` branch of a `switch` gets them, as `UnknownWebhookEvent`.
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

/** An event of a type that this version of the client does not know. */
export interface UnknownWebhookEvent {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

interface Envelope<Type extends string> {
  readonly type: Type;
  /** When it happened; of pills, when the platform received the oldest. UTC, six decimals. */
  readonly timestamp: string;
}
