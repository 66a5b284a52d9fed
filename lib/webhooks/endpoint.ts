import type { EventType } from './event-types.ts';

/** What a pill must be to be posted to an endpoint. */
export interface PillFilter {
  /** Empty = every symbol but test symbols, which must be named. */
  readonly symbols: readonly string[];
  readonly minConfidence: number | undefined;
  /** Of the gross spread, in percent; both included. */
  readonly minSpread: number | undefined;
  readonly maxSpread: number | undefined;
  /** Market states; empty = all. */
  readonly states: readonly string[];
  /** Whether backfill pills are posted as well. */
  readonly backfill: boolean;
}

export type EndpointStatus = 'pending' | 'enabled' | 'disabled';

/** Why an endpoint is disabled: by its owner, after failures, or because it answered 410. */
export type DisabledReason = 'owner' | 'failing' | 'gone';

/** An address of a customer that events are posted to. */
export interface WebhookEndpoint {
  /** `whe_` and 12 random characters. */
  readonly id: string;
  readonly accountId: string;
  readonly url: string;
  readonly description: string;
  readonly eventTypes: readonly EventType[];
  readonly filter: PillFilter;
  /** Messages a second at most. */
  readonly ratePerS: number;
  /** A pill older than this is not posted any more. */
  readonly maxAgeS: number;
  readonly status: EndpointStatus;
  readonly disabledReason: DisabledReason | undefined;
  /** First failure after the last success. */
  readonly failingSince: Date | undefined;
  /** No attempt before: circuit breaker or Retry-After. */
  readonly restingUntil: Date | undefined;
  /** Receive time of the first pill that was not kept, because too much waited. */
  readonly backlogFullSince: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}
