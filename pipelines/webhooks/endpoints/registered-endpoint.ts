import type { AccountAccess } from '../../../domain/access/account-access.ts';
import { tierOf } from '../../../domain/access/entitlement.ts';
import {
  type EndpointState,
  endpointState,
} from '../../../domain/webhooks/endpoints/endpoint-state.ts';
import type { WebhookEndpoint } from '../../../domain/webhooks/endpoints/webhook-endpoint.ts';
import { type BucketRate, fullBucket } from '../../../lib/rate/token-bucket.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { createCircuitBreaker } from './circuit-breaker.ts';

export type RegisteredEndpoint = ReturnType<typeof createRegisteredEndpoint>;

/** The fields that a load replaces. */
export interface EndpointData {
  readonly settings: WebhookEndpoint;
  readonly headers: Readonly<Record<string, string>>;
  readonly challenge: string;
  readonly secrets: readonly { readonly bytes: Buffer; readonly untilMs: number }[];
  readonly account: AccountAccess;
  /** How many endpoints of the account are older. */
  readonly rank: number;
  readonly isDeleted: boolean;
}

export interface RegisteredEndpointDeps {
  hasRoom(endpointId: string): boolean;
  onDiscarded(endpointId: string, receivedAt: Micros, pills: number): void;
}

/**
 * An endpoint as the dispatcher knows it; one object over all changes of its settings.
 * @param data read at every call, so that its owner may replace the content
 */
export function createRegisteredEndpoint(
  id: string,
  data: Readonly<{ now: EndpointData }>,
  deps: RegisteredEndpointDeps,
) {
  /** State at a time: a subscription may end without a change of the endpoint. */
  const state = (nowMs: number): EndpointState | 'deleted' => {
    const { isDeleted, rank, settings, account } = data.now;
    return isDeleted ? 'deleted' : endpointState(rank, settings.status, tierOf(account, nowMs));
  };
  return {
    id,
    breaker: createCircuitBreaker(),
    /** For all its messages in this process; see `rateLimitOf`. */
    bucket: fullBucket(0),
    /** First failure after the last success, as far as this process knows. */
    failingSinceMs: undefined as number | undefined,
    /** As read last. */
    get settings() {
      return data.now.settings;
    },
    get headers() {
      return data.now.headers;
    },
    get challenge() {
      return data.now.challenge;
    },
    get filter() {
      return data.now.settings.filter;
    },
    /** Secrets in force, newest first. */
    secretsAt: (nowMs: number): readonly Buffer[] =>
      data.now.secrets.filter(({ untilMs }) => nowMs < untilMs).map(({ bytes }) => bytes),
    state,
    receivesPills: () =>
      state(Date.now()) === 'enabled' && data.now.settings.eventTypes.includes('pill.published'),
    /** Whether more messages may wait for the endpoint. */
    hasRoom: () => deps.hasRoom(id),
    /** Reports pills that were not stored, because too many messages wait. */
    discard: (receivedAt: Micros, pills: number) => deps.onDiscarded(id, receivedAt, pills),
  };
}

/**
 * The rate of an endpoint at a dispatcher that reads this share of the log. The bucket holds the
 * messages of one second, and at least one token: an endpoint with a small share must get messages
 * too.
 */
export function rateLimitOf({ settings }: RegisteredEndpoint, share: number): BucketRate {
  const perS = settings.ratePerS * share;
  return { perS, burst: Math.max(1, perS) };
}
