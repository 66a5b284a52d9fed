/** What the pages use of an endpoint. */
export interface Endpoint {
  readonly id: string;
  readonly url: string;
  readonly description: string;
  readonly event_types: readonly string[];
  readonly symbols: readonly string[];
  readonly min_confidence: number | null;
  readonly states: readonly string[];
  readonly state: 'pending' | 'enabled' | 'disabled' | 'over_limit' | 'not_entitled';
  readonly disabled_reason: 'owner' | 'failing' | 'gone' | null;
  readonly failing_since: string | null;
  readonly resting_until: string | null;
}

export interface Endpoints {
  readonly data: readonly Endpoint[];
  readonly limit: number | null;
  readonly next: string | null;
}

export interface Delivery {
  readonly message_id: string;
  readonly event_type: string;
  readonly pills: number;
  readonly status: 'waiting' | 'failed' | 'expired';
  readonly attempts: number;
  readonly next_at: string | null;
  readonly last_status: number | null;
  readonly last_reason: string | null;
  readonly created_at: string;
}

export interface Attempt {
  readonly at: string;
  readonly message_id: string;
  readonly event_type: string;
  readonly pills: number;
  readonly attempt: number;
  readonly outcome: 'delivered' | 'retry' | 'failed' | 'expired';
  readonly status: number | null;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly latency_ms: number;
  readonly answer: string;
}

export const EVENT_TYPES = [
  ['pill.published', 'each pill that passes the filters'],
  ['quota.warning', 'a day’s calls run out'],
  ['key.expiring', 'a key expires soon'],
  ['subscription.changed', 'the plan changes'],
  ['payment.failed', 'a payment failed'],
  ['payment.reminder', 'access ends for lack of payment'],
  ['endpoint.failing', 'an endpoint does not answer'],
  ['endpoint.disabled', 'an endpoint was disabled'],
] as const;

/** What the state of an endpoint means, and what to do. */
export function stateText(endpoint: Endpoint): string {
  switch (endpoint.state) {
    case 'pending':
      return 'Pending: it has not answered the challenge yet';
    case 'enabled':
      return endpoint.failing_since === null ? 'Enabled' : 'Enabled, failing';
    case 'over_limit':
      return 'Over the limit of the plan';
    case 'not_entitled':
      return 'The plan has no webhooks';
    default:
      return endpoint.disabled_reason === 'failing'
        ? 'Disabled after failing for too long'
        : endpoint.disabled_reason === 'gone'
          ? 'Disabled: it answered 410'
          : 'Disabled';
  }
}
