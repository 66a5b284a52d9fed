import type { PillFilter } from '../../../schemas/pill-filter.ts';
import type { EventType } from '../events/event-catalogue.ts';

/** Conditions that a pill must meet to be posted to an endpoint. */
export interface EndpointFilter extends PillFilter {
  /** Empty = all symbols except test symbols, which must be named. */
  readonly symbols: readonly string[];
  /** Whether backfill pills are posted as well. */
  readonly backfill: boolean;
}

export type EndpointStatus = 'pending' | 'enabled' | 'disabled';

/** Why an endpoint is disabled: by its owner, after failures, or after it answered 410. */
export type DisabledReason = 'owner' | 'failing' | 'gone';

/** An address of a customer to which events are posted. */
export interface WebhookEndpoint {
  /** `whe_` and 12 random characters. */
  readonly id: string;
  readonly accountId: string;
  readonly url: string;
  readonly description: string;
  readonly eventTypes: readonly EventType[];
  readonly filter: EndpointFilter;
  /** At most this many messages a second. */
  readonly ratePerS: number;
  /** An older pill is not posted. */
  readonly maxAgeS: number;
  readonly status: EndpointStatus;
  readonly disabledReason: DisabledReason | undefined;
  /** First failure after the last success. */
  readonly failingSince: Date | undefined;
  /** No attempt is made before: circuit breaker or Retry-After. */
  readonly restingUntil: Date | undefined;
  /** Receive time of the first pill discarded because too many messages waited. */
  readonly backlogFullSince: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}
