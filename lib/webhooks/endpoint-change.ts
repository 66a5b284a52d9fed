import type { WebhookEndpoint } from './endpoint.ts';
import { type EndpointFault, filterFaults } from './endpoint-check.ts';
import type { EndpointSettings } from './endpoint-settings.ts';

/** What a change by the owner does to the status of an endpoint. */
export type ChangePlan =
  | {
      readonly kind: 'ok';
      readonly set: {
        readonly status?: WebhookEndpoint['status'];
        readonly disabled_reason?: 'owner' | null;
        readonly failing_since?: null;
        readonly resting_until?: null;
      };
      /** It must prove itself: with a new challenge, by a test send. */
      readonly isTested: boolean;
      /** What waits for it goes on. */
      readonly isWoken: boolean;
    }
  | { readonly kind: 'invalid'; readonly faults: readonly EndpointFault[] }
  | { readonly kind: 'conflict'; readonly detail: string };

/**
 * Another URL is another receiver: it is pending until it has answered the challenge, whatever it
 * was before. So is one that failed, or was gone, when its owner wants it back. One that its owner
 * had disabled had answered before, and is enabled again at once: a pending one cannot be disabled,
 * so that this is no way around the challenge.
 */
export function planChange(
  endpoint: WebhookEndpoint,
  settings: Partial<EndpointSettings>,
  status: 'enabled' | 'disabled' | undefined,
): ChangePlan {
  const faults = filterFaults({ ...endpoint.filter, ...settings });
  if (faults.length > 0) return { kind: 'invalid', faults };
  const isMoved = settings.url !== undefined && settings.url !== endpoint.url;
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

const NOT_YET =
  'A pending endpoint gets test messages alone, and cannot be disabled. Delete it, or have it ' +
  'answer its challenge first.';
const FRESH = { disabled_reason: null, failing_since: null, resting_until: null } as const;

function tested(): ChangePlan {
  return { kind: 'ok', set: { ...FRESH, status: 'pending' }, isTested: true, isWoken: false };
}
