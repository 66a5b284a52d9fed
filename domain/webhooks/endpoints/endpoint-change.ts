import { type EndpointFault, filterFaults } from './endpoint-check.ts';
import type { EndpointSettings } from './endpoint-settings.ts';
import { originOf } from './origin.ts';
import type { WebhookEndpoint } from './webhook-endpoint.ts';

/** How a change by the owner affects an endpoint's status. */
export type ChangePlan =
  | {
      readonly kind: 'ok';
      readonly set: {
        readonly status?: WebhookEndpoint['status'];
        readonly disabled_reason?: 'owner' | null;
        readonly failing_since?: null;
        readonly resting_until?: null;
      };
      /** The endpoint must answer a new challenge, sent as a test. */
      readonly isTested: boolean;
      /** The waiting messages of the endpoint are due again. */
      readonly isWoken: boolean;
    }
  | { readonly kind: 'invalid'; readonly faults: readonly EndpointFault[] }
  | { readonly kind: 'conflict'; readonly detail: string };

/**
 * A new URL means a new receiver: the endpoint is pending until it answers the challenge, whatever
 * its status was. The same holds when the owner enables an endpoint that failed or was gone. An
 * endpoint disabled by its owner had answered before and is enabled at once: a pending endpoint
 * cannot be disabled, so this is no way around the challenge.
 */
export function planChange(
  endpoint: WebhookEndpoint & { readonly headerNames: readonly string[] },
  settings: Partial<EndpointSettings>,
  {
    status,
    mayMoveHeaders,
  }: {
    readonly status: 'enabled' | 'disabled' | undefined;
    readonly mayMoveHeaders: boolean;
  },
): ChangePlan {
  const { url = endpoint.url, headers } = settings;
  const faults = [...filterFaults({ ...endpoint.filter, ...settings })];
  const takesHeaders = headers === undefined && endpoint.headerNames.length > 0;
  if (takesHeaders && !mayMoveHeaders && originOf(url) !== originOf(endpoint.url)) {
    faults.push({ pointer: '#/headers', code: 'headers_required', detail: HEADERS_REQUIRED });
  }
  if (faults.length > 0) return { kind: 'invalid', faults };
  const isMoved = url !== endpoint.url;
  const is = isMoved ? 'pending' : endpoint.status;
  if (status === 'disabled' && is === 'pending') return { kind: 'conflict', detail: NOT_YET };
  if (isMoved) return tested();
  if (status === 'disabled' && is === 'enabled') {
    const set = { status, disabled_reason: 'owner' } as const;
    return { kind: 'ok', set, isTested: false, isWoken: false };
  }
  if (status === 'enabled' && is === 'disabled') {
    if (endpoint.disabledReason !== 'owner') return tested();
    return { kind: 'ok', set: { ...FRESH, status }, isTested: false, isWoken: true };
  }
  return { kind: 'ok', set: {}, isTested: false, isWoken: false };
}

/** Otherwise a leaked key could have the credentials of a receiver sent to a server of its choice. */
const HEADERS_REQUIRED =
  'The URL has another origin, and a key cannot have stored headers sent there: give `headers` ' +
  'again, or {} to remove them.';
const NOT_YET =
  'A pending endpoint gets only test messages and cannot be disabled. Delete the endpoint, or let ' +
  'it answer its challenge first.';
const FRESH = { disabled_reason: null, failing_since: null, resting_until: null } as const;

function tested(): ChangePlan {
  return { kind: 'ok', set: { ...FRESH, status: 'pending' }, isTested: true, isWoken: false };
}
